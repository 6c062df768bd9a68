#!/usr/bin/env bash
# Goes through the list of checks with curl. The test tells it the servers, and reads a line a check.
set -uo pipefail
: "${WLMSERVER_URL:?}" "${WLMSERVER_USERS_URL:?}"
search=indices:data/read/search
forever='{"ext":{"stub":{"query_time":"10m"}}}'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# call METHOD PATH [BODY] [OPTION...] asks the server, and leaves the status and the body behind.
call() {
	local method=$1 path=$2 data=${3:-}
	shift $(($# < 3 ? $# : 3))
	[[ -z $data ]] || set -- --data-binary "$data" -H 'Content-Type: application/json' "$@"
	body=$(curl -sS -X "$method" -w '\n%{http_code}' "$@" "${base:-$WLMSERVER_URL}$path") || return
	status=${body##*$'\n'} body=${body%$'\n'*}
}

# wants STATUS [TEXT...] looks at what call has left.
wants() {
	local text
	[[ $status == "$1" ]] || { echo "status $status, not $1: $body"; return 1; }
	for text in "${@:2}"; do
		[[ $body == *"$text"* ]] || { echo "no $text in $body"; return 1; }
	done
}

# create_group NAME BLOCKS makes a group and leaves its id.
create_group() {
	call PUT /_wlm/workload_group "{\"name\":\"$1\",\"resiliency_mode\":\"enforced\",\"resource_limits\":{\"cpu\":0.1},$2}" &&
		wants 200 && group=$(field _id)
}

# field NAME prints the first field of that name that holds a text.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$body" | head -n 1; }

# search_in GROUP BODY FILE searches in the background, and leaves its process; the answer goes to the file, its status beside it.
search_in() {
	curl -sS -o "$3" -w '%{http_code}' -H "workloadGroupId: $1" -H 'X-Opaque-Id: report-7' -H 'Content-Type: application/json' \
		-d "$2" "$WLMSERVER_URL/books/_search" >"$3.status" &
	pid=$!
}

# task STATE prints the id of the search in that state.
task() {
	curl -sS "$WLMSERVER_URL/_tasks?group_by=none&detailed&actions=$search&filter_path=tasks.node,tasks.id,tasks.status.state" |
		grep -o "{\"node\":\"[^\"]*\",\"id\":[0-9]*,\"status\":{\"state\":\"$1\"" | sed 's/{"node":"\([^"]*\)","id":\([0-9]*\),.*/\1:\2/'
}

# wait_for STATE waits for a search in that state and leaves its id.
wait_for() {
	for _ in {1..600}; do
		id=$(task "$1")
		[[ -z $id ]] || return 0
		sleep 0.05
	done
	echo "there is no $1 search"
	return 1
}

# cancelled PROCESS FILE looks at the answer to a search that was cancelled.
cancelled() {
	wait "$1"
	status=$(<"$2.status") body=$(<"$2")
	wants 500 task_cancelled_exception
}

product() { call GET '/?pretty=false' && wants 200 '"distribution":"opensearch"' '"number":"'; }

ping() {
	[[ $(curl -sS --head -o /dev/null -w '%{http_code} %{size_download}' "$WLMSERVER_URL") == '200 0' ]]
}

groups() {
	local path=/_wlm/workload_group made
	create_group crud '"throttling":{"attribute":"group","node_limit":3}' && made=$group &&
		call GET $path/crud && wants 200 "\"_id\":\"$made\"" '"node_limit":3' &&
		call PUT $path/crud '{"throttling":{"node_limit":5},"queue":{"size_per_bucket":7}}' && wants 200 '"node_limit":5' '"size_per_bucket":7' &&
		call GET $path && wants 200 '"name":"crud"' &&
		call DELETE $path/crud && wants 200 '{"acknowledged":true}' &&
		call GET $path/crud && wants 404 resource_not_found_exception
}

settings() {
	local key=wlm.workload_group.mode
	call PUT /_cluster/settings "{\"transient\":{\"$key\":\"enabled\"}}" && wants 200 '"acknowledged":true' &&
		call GET '/_cluster/settings?flat_settings' && wants 200 "\"transient\":{\"$key\":\"enabled\"}" &&
		call PUT /_cluster/settings "{\"transient\":{\"$key\":null}}" && wants 200 &&
		call GET /_cluster/settings && wants 200 '"transient":{}'
}

bulk() {
	local i
	call PUT /books '{"settings":{"number_of_shards":2,"number_of_replicas":0}}' && wants 200 || return
	for i in {0..29}; do
		printf '{"index":{"_id":"%d"}}\n{"title":"book %d"}\n' "$i" "$i"
	done >"$scratch/bulk"
	call POST /books/_bulk "@$scratch/bulk" && wants 200 '"errors":false' &&
		call POST /_refresh && wants 200 '"failed":0' &&
		call POST /books/_bulk $'{"create":{"_id":"1"}}\n{"title":"again"}\n' && wants 200 '"errors":true' '"status":409'
}

search() {
	call POST /books/_search '{"query":{"match_all":{}},"size":5}' && wants 200 '"total":{"value":30,"relation":"eq"}' '"title":"book ' &&
		[[ $(grep -o '"_source"' <<<"$body" | wc -l) == 5 ]]
}

count() { call POST /books/_count '{"query":{"term":{"title":"x"}}}' && wants 200 '"count":30'; }

msearch() {
	call POST '/books/_msearch?filter_path=responses.status,responses.error.type' \
		$'{}\n{"size":1}\n{"index":"nosuch"}\n{}\n{}\n{"query":{"match_all":{}}}\n' && wants 200 &&
		[[ $body == '{"responses":[{"status":200},{"error":{"type":"index_not_found_exception"},"status":404},{"status":200}]}' ]]
}

scroll() {
	local next pages=0
	call POST '/books/_search?scroll=1m' '{"size":7}' && wants 200 || return
	while [[ $body == *'"_source"'* ]]; do
		grep -o '"_id":"[^"]*"' <<<"$body" >>"$scratch/scroll"
		next=$(field _scroll_id) pages=$((pages + 1))
		call POST /_search/scroll "{\"scroll\":\"1m\",\"scroll_id\":\"$next\"}" && wants 200 || return
	done
	call DELETE /_search/scroll "{\"scroll_id\":[\"$next\"]}" && wants 200 '"num_freed":1' &&
		[[ $pages == 5 && $(sort -u "$scratch/scroll" | wc -l) == 30 ]]
}

# One search that runs and one that is parked, which the checks of tasks look at and end.
tasks_list() {
	create_group tasks '"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":1}' || return
	search_in "$group" "$forever" "$scratch/running"
	running_pid=$pid
	wait_for running && running=$id || return
	search_in "$group" "$forever" "$scratch/parked"
	parked_pid=$pid
	wait_for waiting && parked=$id &&
		call GET "/_tasks?detailed&actions=$search" &&
		wants 200 '"transport_address":"' '"roles":[' '"attributes":{' '"cancellable":true' '"X-Opaque-Id":"report-7"' '"position":1' "indices[books]" &&
		[[ $(grep -o '"running_time_in_nanos"' <<<"$body" | wc -l) == 2 ]]
}

tasks_get() {
	call GET "/_tasks/$running" && wants 200 '"completed":false' "\"action\":\"$search\"" '"state":"running"' &&
		call GET "/_tasks/$parked" && wants 200 '"completed":false' '"state":"waiting"' &&
		call GET /_tasks/nosuch:1 && wants 404 resource_not_found_exception
}

cancel_parked() { call POST "/_tasks/$parked/_cancel" && wants 200 "\"$parked\"" && cancelled "$parked_pid" "$scratch/parked"; }

cancel_running() { call POST "/_tasks/$running/_cancel" && wants 200 "\"$running\"" && cancelled "$running_pid" "$scratch/running"; }

error_400() { call POST /books/_search '{"query":{"nosuch":{}}}' && wants 400 parsing_exception nosuch; }

error_401() {
	local base=$WLMSERVER_USERS_URL
	call GET / '' -u ann:wrong && wants 401 security_exception && call GET / && wants 401 security_exception &&
		call GET / '' -u ann:secret && wants 200
}

error_403() {
	local base=$WLMSERVER_USERS_URL
	call PUT /_cluster/settings '{"transient":{"wlm.workload_group.mode":"enabled"}}' -u bob:secret && wants 403 security_exception
}

error_404() { call POST /nosuch/_search && wants 404 index_not_found_exception; }

error_405() { call DELETE /_wlm/stats && wants 405 'is not allowed for uri' '"status":405'; }

error_429() {
	create_group full '"throttling":{"attribute":"group","node_limit":1}' || return
	search_in "$group" "$forever" "$scratch/full"
	wait_for running && call POST /books/_search '{}' -H "workloadGroupId: $group" && wants 429 rejected_execution_exception &&
		call POST "/_tasks/$id/_cancel" && wants 200 && cancelled "$pid" "$scratch/full"
}

error_500() {
	call POST /books/_search '{"ext":{"stub":{"fail_shards":2}}}' && wants 500 search_phase_execution_exception '"failed_shards":['
}

# curl itself waits as long as Retry-After says.
retry_after() {
	create_group patience '"throttling":{"attribute":"group","node_limit":1}' || return
	search_in "$group" '{"ext":{"stub":{"query_time":"3s"}}}' "$scratch/patience"
	wait_for running || return
	body=$(curl --no-progress-meter --retry 10 -H "workloadGroupId: $group" "$WLMSERVER_URL/books/_search?size=0" 2>"$scratch/warnings")
	wait "$pid"
	status=200
	grep -q 'Will retry in 1 second' "$scratch/warnings" && wants 200 '"value":30' && [[ $(<"$scratch/patience.status") == 200 ]]
}

compressed() {
	local words
	printf -v words '"%s",' {1..400}
	printf '{"size":30,"query":{"terms":{"title":[%s]}}}' "${words%,}" | gzip >"$scratch/body.gz"
	call POST /books/_search "@$scratch/body.gz" -H 'Content-Encoding: gzip' --compressed -H 'X-Opaque-Id: gzip' && wants 200 '"title":"book 7"'
}

keep_alive() {
	local ask=(-sS -o /dev/null -w '%{http_code} %{num_connects}\n' -H 'X-Opaque-Id: keep-alive')
	body=$(curl "${ask[@]}" -d '{"query":{"nosuch":{}}}' -H 'Content-Type: application/json' "$WLMSERVER_URL/_search" \
		--next "${ask[@]}" "$WLMSERVER_URL/nosuch/_search" \
		--next "${ask[@]}" -X DELETE "$WLMSERVER_URL/_wlm/stats" \
		--next "${ask[@]}" --head "$WLMSERVER_URL" \
		--next "${ask[@]}" --head "$WLMSERVER_URL/books/_doc/nosuch" \
		--next "${ask[@]}" "$WLMSERVER_URL/books/_count")
	[[ $body == $'400 1\n404 0\n405 0\n200 0\n404 0\n200 0' ]]
}

# check NAME FUNCTION prints one line. It is not run in a subshell: later checks use what earlier ones have left.
check() {
	body=
	if "$2" >"$scratch/reason" 2>&1; then
		echo "ok $1"
	else
		printf 'not ok %s: %s\n' "$1" "$(tr -s '\n\t ' ' ' <"$scratch/reason") (last answer: ${body:0:500})"
	fi
}

check product product
check ping ping
check groups groups
check settings settings
check bulk bulk
check search search
check count count
check msearch msearch
check scroll scroll
check 'tasks list' tasks_list
check 'tasks get' tasks_get
check 'tasks cancel parked' cancel_parked
check 'tasks cancel running' cancel_running
check 'error 400' error_400
check 'error 401' error_401
check 'error 403' error_403
check 'error 404' error_404
check 'error 405' error_405
check 'error 429' error_429
check 'error 500' error_500
check 'retry after' retry_after
check gzip compressed
check keep-alive keep_alive
