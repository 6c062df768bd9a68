"""Goes through the list of checks with opensearch-py. The test tells it the servers, and reads a line a check."""

import os
import threading
import time

from opensearchpy import OpenSearch, Urllib3HttpConnection, helpers
from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    NotFoundError,
    RequestError,
    TransportError,
)

URL, USERS_URL = os.environ["WLMSERVER_URL"], os.environ["WLMSERVER_USERS_URL"]
SEARCH = "indices:data/read/search"
FOREVER = {"ext": {"stub": {"query_time": "10m"}}}

client = OpenSearch(URL, timeout=60)


class PatientConnection(Urllib3HttpConnection):
    """Waits as long as a refusal says, and asks again."""

    tries = 10
    waited = 0

    def perform_request(self, method, url, params=None, body=None, timeout=None, ignore=(), headers=None):
        for _ in range(self.tries):
            status, received, text = super().perform_request(
                method, url, params, body, timeout, {*ignore, 429}, headers
            )
            if status != 429:
                return status, received, text
            PatientConnection.waited += 1
            time.sleep(int(received["Retry-After"]))
        self._raise_error(status, text, received.get("Content-Type"))


class Background(threading.Thread):
    """A call that takes long."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.answer, self.error = call, None, None
        self.start()

    def run(self):
        try:
            self.answer = self.call()
        except Exception as e:  # looked at by whoever has started it
            self.error = e

    def result(self):
        self.join(60)
        assert not self.is_alive(), "no answer within a minute"
        if self.error:
            raise self.error
        return self.answer


def raises(kind, status, error, call):
    try:
        answer = call()
    except kind as e:
        assert type(e) is kind and e.status_code == status, repr(e)
        assert error in str(e.error), repr(e)
        return e
    raise AssertionError(f"no error, but {answer}")


def create_group(name, **blocks):
    body = {"name": name, "resiliency_mode": "enforced", "resource_limits": {"cpu": 0.1}, **blocks}
    return client.transport.perform_request("PUT", "/_wlm/workload_group", body=body)["_id"]


def search_in(group, body=None, **params):
    return client.search(index="books", body=body or {}, headers={"workloadGroupId": group}, **params)


def searches():
    """The searches that run or wait, by their state."""
    answer = client.tasks.list(actions=SEARCH, detailed=True)
    return {
        task["status"]["state"]: f"{task['node']}:{task['id']}"
        for node in answer["nodes"].values()
        for task in node["tasks"].values()
        if "state" in task.get("status", {})
    }


def wait_for(*states):
    deadline = time.monotonic() + 30
    while set(found := searches()) != set(states):
        assert time.monotonic() < deadline, f"there is {found}, not {states}"
        time.sleep(0.02)
    return found


def product():
    version = client.info()["version"]
    assert version["distribution"] == "opensearch" and version["number"], version


def ping():
    assert client.ping() is True


def groups():
    path = "/_wlm/workload_group"
    call = client.transport.perform_request
    made = create_group("crud", throttling={"attribute": "group", "node_limit": 3})
    one = call("GET", path + "/crud")["workload_groups"]
    assert [(g["_id"], g["throttling"]["node_limit"]) for g in one] == [(made, 3)], one
    changed = call("PUT", path + "/crud", body={"throttling": {"node_limit": 5}, "queue": {"size_per_bucket": 7}})
    assert changed["throttling"] == {"attribute": "group", "node_limit": 5}, changed
    assert "crud" in [g["name"] for g in call("GET", path)["workload_groups"]]
    assert call("DELETE", path + "/crud") == {"acknowledged": True}
    raises(NotFoundError, 404, "resource_not_found_exception", lambda: call("GET", path + "/crud"))


def settings():
    key = "wlm.workload_group.mode"
    answer = client.cluster.put_settings(body={"transient": {key: "enabled"}})
    assert answer["acknowledged"], answer
    assert client.cluster.get_settings(flat_settings=True)["transient"] == {key: "enabled"}
    client.cluster.put_settings(body={"transient": {key: None}})
    assert client.cluster.get_settings()["transient"] == {}


def bulk():
    client.indices.create(
        index="books", body={"settings": {"number_of_shards": 2, "number_of_replicas": 0}}
    )
    docs = ({"_index": "books", "_id": str(i), "title": f"book {i}"} for i in range(30))
    assert helpers.bulk(client, docs, refresh=True) == (30, [])
    again = [{"_op_type": "create", "_index": "books", "_id": "1", "title": "again"}]
    done, errors = helpers.bulk(client, again, raise_on_error=False)
    assert done == 0 and errors[0]["create"]["status"] == 409, errors


def search():
    answer = client.search(index="books", body={"query": {"match_all": {}}, "size": 5})
    assert answer["hits"]["total"] == {"value": 30, "relation": "eq"}, answer["hits"]["total"]
    assert len(answer["hits"]["hits"]) == 5 and answer["hits"]["hits"][0]["_source"]["title"]


def count():
    assert client.count(index="books", body={"query": {"term": {"title": "x"}}})["count"] == 30


def msearch():
    lines = [{"index": "books"}, {"size": 1}, {"index": "nosuch"}, {}, {}, {"query": {"match_all": {}}}]
    found = client.msearch(body=lines, index="books")["responses"]
    assert [r["status"] for r in found] == [200, 404, 200], found
    assert found[1]["error"]["type"] == "index_not_found_exception", found[1]


def scroll():
    found = {hit["_id"] for hit in helpers.scan(client, index="books", size=7, scroll="1m")}
    assert found == {str(i) for i in range(30)}, found


class Tasks:
    """One search that runs and one that is parked, which the checks of tasks look at and end."""

    def begin(self):
        self.group = create_group(
            "tasks", throttling={"attribute": "group", "node_limit": 1}, queue={"size_per_bucket": 1}
        )
        self.calls = {"running": self.search()}
        wait_for("running")
        self.calls["waiting"] = self.search()
        self.ids = wait_for("running", "waiting")

    def search(self):
        return Background(lambda: search_in(self.group, FOREVER, opaque_id="report-7"))

    def list(self):
        self.begin()
        (node,) = client.tasks.list(actions=SEARCH, detailed=True)["nodes"].values()
        assert {"name", "transport_address", "host", "ip", "roles", "attributes"} <= set(node), node
        assert len(node["tasks"]) == 2
        for task in node["tasks"].values():
            assert task["cancellable"] and task["headers"]["X-Opaque-Id"] == "report-7", task
            assert "books" in task["description"] and task["running_time_in_nanos"] > 0, task
        assert node["tasks"][self.ids["waiting"]]["status"]["position"] == 1, node

    def get(self):
        for state, task_id in self.ids.items():
            answer = client.tasks.get(task_id=task_id)
            assert answer["completed"] is False and answer["task"]["action"] == SEARCH, answer
            assert answer["task"]["status"]["state"] == state, answer
        raises(NotFoundError, 404, "resource_not_found_exception", lambda: client.tasks.get(task_id="nosuch:1"))

    def cancel(self, state):
        answer = client.tasks.cancel(task_id=self.ids[state])
        assert not answer.get("node_failures") and len(answer["nodes"]) == 1, answer
        e = raises(TransportError, 500, "", self.calls[state].result)
        assert e.info["error"]["root_cause"][0]["type"] == "task_cancelled_exception", e.info


tasks = Tasks()


def error_400():
    e = raises(RequestError, 400, "parsing_exception", lambda: client.search(body={"query": {"nosuch": {}}}))
    assert "nosuch" in e.info["error"]["reason"], e.info


def error_401():
    stranger = OpenSearch(USERS_URL, http_auth=("ann", "wrong"))
    raises(AuthenticationException, 401, "security_exception", stranger.info)
    assert OpenSearch(USERS_URL, http_auth=("ann", "secret")).ping()


def error_403():
    bob = OpenSearch(USERS_URL, http_auth=("bob", "secret"))
    raises(
        AuthorizationException, 403, "security_exception",
        lambda: bob.cluster.put_settings(body={"transient": {"wlm.workload_group.mode": "enabled"}}),
    )


def error_404():
    raises(NotFoundError, 404, "index_not_found_exception", lambda: client.search(index="nosuch"))


def error_405():
    raises(
        TransportError, 405, "is not allowed for uri",
        lambda: client.transport.perform_request("DELETE", "/_wlm/stats"),
    )


def error_429():
    group = create_group("full", throttling={"attribute": "group", "node_limit": 1})
    running = Background(lambda: search_in(group, FOREVER))
    found = wait_for("running")
    raises(TransportError, 429, "rejected_execution_exception", lambda: search_in(group))
    client.tasks.cancel(task_id=found["running"])
    raises(TransportError, 500, "", running.result)


def error_500():
    body = {"ext": {"stub": {"fail_shards": 2}}}
    e = raises(
        TransportError, 500, "search_phase_execution_exception", lambda: client.search(index="books", body=body)
    )
    assert len(e.info["error"]["failed_shards"]) == 2, e.info


def retry_after():
    group = create_group("patience", throttling={"attribute": "group", "node_limit": 1})
    running = Background(lambda: search_in(group, {"ext": {"stub": {"query_time": "3s"}}}))
    wait_for("running")
    patient = OpenSearch(URL, connection_class=PatientConnection)
    answer = patient.search(index="books", body={}, headers={"workloadGroupId": group})
    assert answer["hits"]["total"]["value"] == 30 and PatientConnection.waited > 0
    assert running.result()["timed_out"] is False


def gzip():
    squeezed = OpenSearch(URL, http_compress=True)
    body = {"query": {"terms": {"title": ["many words"] * 200}}, "size": 30}
    answer = squeezed.search(index="books", body=body, opaque_id="gzip")
    assert len(answer["hits"]["hits"]) == 30


def keep_alive():
    c = OpenSearch(URL)
    mark = {"X-Opaque-Id": "keep-alive"}
    raises(RequestError, 400, "", lambda: c.search(body={"query": {"nosuch": {}}}, headers=mark))
    raises(NotFoundError, 404, "", lambda: c.search(index="nosuch", headers=mark))
    raises(TransportError, 405, "", lambda: c.transport.perform_request("DELETE", "/_wlm/stats", headers=mark))
    assert c.ping(headers=mark)
    assert c.exists(index="books", id="nosuch", headers=mark) is False
    assert c.count(index="books", headers=mark)["count"] == 30


CHECKS = {
    "product": product,
    "ping": ping,
    "groups": groups,
    "settings": settings,
    "bulk": bulk,
    "search": search,
    "count": count,
    "msearch": msearch,
    "scroll": scroll,
    "tasks list": tasks.list,
    "tasks get": tasks.get,
    "tasks cancel parked": lambda: tasks.cancel("waiting"),
    "tasks cancel running": lambda: tasks.cancel("running"),
    "error 400": error_400,
    "error 401": error_401,
    "error 403": error_403,
    "error 404": error_404,
    "error 405": error_405,
    "error 429": error_429,
    "error 500": error_500,
    "retry after": retry_after,
    "gzip": gzip,
    "keep-alive": keep_alive,
}

for name, check in CHECKS.items():
    try:
        check()
        print("ok", name, flush=True)
    except Exception as e:
        print(f"not ok {name}:", " ".join(f"{type(e).__name__}: {e}".split()), flush=True)
