# An image of the server: one static program, a user without rights, data in /data.
#
#   docker build -t wlmserver .
#   docker run -p 127.0.0.1:9200:9200 -e WLMSERVER_AUTH_ALLOW_ANONYMOUS=true wlmserver
#
# Who reaches the port may do everything then: publish it on this machine alone, as above, or give
# users (docs/security.md). Configuration is by environment or -E; docs/configuration.md has the keys.
# compose.yaml makes a cluster of three. With http.ssl.* the health check has to be told so:
# --health-cmd "/wlmserver health https://127.0.0.1:9200 --insecure"

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /image/wlmserver ./cmd/wlmserver && mkdir /image/data

# What compose.yaml needs beside the server: etcd, and certificates for the nodes.
FROM debian:stable-slim AS tools
RUN apt-get update && apt-get install -y --no-install-recommends etcd-server openssl && rm -rf /var/lib/apt/lists/*
COPY packaging/certificates /usr/local/bin/certificates

FROM scratch AS server
COPY --from=build /image/wlmserver /wlmserver
COPY --from=build --chown=65532:65532 /image/data /data
USER 65532:65532
ENV WLMSERVER_PATH_DATA=/data WLMSERVER_HTTP_HOST=0.0.0.0
VOLUME /data
EXPOSE 9200 9300
HEALTHCHECK --interval=5s --timeout=6s --start-period=15s --retries=3 CMD ["/wlmserver", "health"]
ENTRYPOINT ["/wlmserver"]
