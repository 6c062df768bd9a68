#!/usr/bin/env bash
# Measures the server over HTTP, in the same rounds with whatever of these is installed:
#
#	HAProxy      a limit (maxconn) with a queue before a handler
#	nginx        a limit without a queue (limit_conn) before a handler
#	OpenSearch   a real node of one empty index; only with --opensearch
#
#	bench/http.sh [--opensearch] [--install] [FLAG of cmd/overhttp...]
#	bench/http.sh -quick -only search
#	bench/http.sh --opensearch -json http.json
#
# It installs nothing. With --install it does: HAProxy and nginx by apt-get, as root. What
# --opensearch needs (a JDK 21 or newer, Maven, and once 62 MB from Maven Central) it fetches
# into bench/opensearch/build. What is missing is left out, and it says so.
# Needs Linux and Go; it takes four minutes, with everything seven.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

opensearch=
flags=()
for argument; do
	case $argument in
	--opensearch) opensearch=yes ;;
	--install)
		echo "http.sh: apt-get install haproxy nginx" >&2
		apt-get update -qq
		apt-get install -y -qq haproxy nginx >/dev/null
		;;
	-h | --help)
		sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'
		exit
		;;
	*) flags+=("$argument") ;;
	esac
done

PATH=$PATH:/usr/sbin:/usr/local/sbin # where they are for root alone
for peer in haproxy nginx; do
	if binary=$(command -v "$peer"); then
		flags=(-"$peer" "$binary" "${flags[@]}")
		echo "http.sh: with $("$peer" -v 2>&1 | head -n 1)" >&2
	else
		echo "http.sh: WITHOUT $peer, which is not installed (apt-get install $peer)" >&2
	fi
done

if [[ $opensearch ]]; then
	node=$here/opensearch/node.sh
	if ! "$node" jdk >/dev/null; then
		echo "http.sh: WITHOUT OpenSearch" >&2
	elif [[ -d $here/opensearch/build/classes ]] || "$node" build; then
		flags=(-opensearch "$node" "${flags[@]}")
		echo "http.sh: with OpenSearch, by $("$node" jdk)" >&2
	else
		echo "http.sh: WITHOUT OpenSearch, whose libraries could not be fetched" >&2
	fi
fi

# 10,000 waiting requests are as many connections, on both sides.
if ! ulimit -n "$(ulimit -Hn)" || (($(ulimit -n) < 11000)); then
	echo "http.sh: only $(ulimit -n) files may be open; 10,000 waiting requests need 11,000 (-only leaves park out)" >&2
fi

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
go build -C "$here" -o "$programs/overhttp" ./cmd/overhttp
go build -C "$here/.." -o "$programs/wlmserver" ./cmd/wlmserver
"$programs/overhttp" -wlmserver "$programs/wlmserver" "${flags[@]}"
