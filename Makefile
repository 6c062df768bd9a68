# Go is all that is needed; race wants a C compiler too. Every target is a short form of
# a command that can be typed as well.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

FUZZTIME ?= 30s
SOAK ?= 60s
COUNT ?= 6
ROUNDS ?= 1
SEED ?= 1
BASE ?= HEAD
BENCH ?= .
BENCHFLAGS ?=
CLIENTS ?= all
CLIENTSFLAGS ?=
PACKAGES ?= ./...

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the server as ./wlmserver
	go build -o wlmserver ./cmd/wlmserver

.PHONY: test
test: ## Run the tests
	go test $(PACKAGES)

.PHONY: test-cluster
test-cluster: ## Run the tests of several nodes, each kind of trouble ROUNDS (1) times (100: half an hour)
	cd test/cluster && go test -p 1 $$(go list ./... | grep -v /nodes$$) && go test ./nodes -count=1 -timeout 0 -rounds $(ROUNDS)

.PHONY: race
race: ## Run the tests under the race detector
	go test -race $(PACKAGES)

.PHONY: golden
golden: ## Replay what a real OpenSearch was asked, and print how far the answers are the same
	@go test ./test/golden -count=1 -v -run '^Test(Golden|ExceptionsAreFew)$$' | awk '/recording +cases|^ +[0-9][0-9]-|^ +total|^ok|FAIL|golden_test.go/'

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	tools/fuzz $(FUZZTIME) $(PACKAGES)

.PHONY: clients
clients: ## Drive the server with OpenSearch's CLIENTS (all); the first time they are installed (minutes)
	go test ./test/clients -v -count=1 -timeout 30m -clients '$(CLIENTS)' $(CLIENTSFLAGS)

.PHONY: soak
soak: ## Put the server under everything at once for SOAK (60s)
	go test ./test/soak -v -timeout 0 -soak $(SOAK)

.PHONY: model
model: ## Visit every order of events that small clusters can see, kinds of trouble together too (minutes)
	go test ./internal/sharedtier -run TestEveryOrder -v -model -timeout 0

.PHONY: mutants
mutants: ## Break chosen lines of the admission, one at a time: a test must notice each (minutes)
	go run -C tools ./mutants

.PHONY: bench
bench: ## Run the benchmarks COUNT (6) times
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)

.PHONY: bench-compare
bench-compare: ## Compare the benchmarks of this tree with those of the commit BASE (HEAD)
	@old=$$(mktemp -d); \
	trap 'git worktree remove --force "$$old"' EXIT; \
	git worktree add --quiet --detach "$$old" '$(BASE)'; \
	(cd "$$old" && go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)) >bench-old.txt; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES) >bench-new.txt; \
	tools/tool benchstat bench-old.txt bench-new.txt

.PHONY: bench-peers
bench-peers: ## Compare admission in process with other limiters (6 minutes; BENCHFLAGS=-quick: one)
	cd bench && go run ./cmd/peers -json peers.json $(BENCHFLAGS)

.PHONY: bench-http
bench-http: ## Compare the server over HTTP with bare handlers, HAProxy, nginx (5 minutes; Linux)
	bench/http.sh -json bench/http.json $(BENCHFLAGS)

.PHONY: bench-publish
bench-publish: ## Put what the last two measured into docs/performance.md, and draw its plot
	cd bench && go run ./cmd/publish -page ../docs/performance.md -plot ../docs/img/admission.svg $$(ls peers.json http.json 2>/dev/null)

.PHONY: compat-opensearch
compat-opensearch: ## Send the same requests to this server and to a real OpenSearch (2 minutes; Maven, JDK 21; SEED)
	bench/opensearch/node.sh build
	go test ./test/compat -count 1 -v -timeout 30m -opensearch '$(CURDIR)/bench/opensearch/node.sh' -seed '$(SEED)'

.PHONY: lint
lint: ## Run golangci-lint (builds it the first time)
	tools/tool golangci-lint run $(PACKAGES)

.PHONY: proto
proto: ## Generate the code of what nodes say to one another from its .proto
	go run -C tools ./protos

.PHONY: check
check: ## Test, vet, lint and look at the formatting and the modules: before a commit
	go test ./...
	go vet ./...
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 -r gofmt -l); \
	if [[ -n $$unformatted ]]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go mod tidy -diff
	tools/tool golangci-lint run ./...

.PHONY: rest-reference
rest-reference: ## Make docs/rest-api.md of openapi.yaml
	go test ./test/openapi -run TestReference -update

.PHONY: demo
demo: ## Run the demonstration: a server, a group, more searches than its limit
	go run ./cmd/wlmserver demo

.PHONY: demo-cluster
demo-cluster: ## Show a cluster: three nodes and an etcd, a limit that they share, the end of one of them
	@cd test/cluster && go run ./cmd/demo

.PHONY: run
run: ## Start a server on 127.0.0.1:9200 with its data in ./data
	go run ./cmd/wlmserver

.PHONY: ci
ci: ## Run every check that a change must pass
	.ci/run

.PHONY: clean
clean: ## Remove what was built here (not ./data)
	rm -rf .bin wlmserver bench-old.txt bench-new.txt bench/*.json bench/opensearch/build
