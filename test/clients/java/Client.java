import jakarta.json.JsonObject;
import jakarta.json.spi.JsonProvider;
import java.io.IOException;
import java.io.StringReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.core5.http.HttpHost;
import org.opensearch.client.json.JsonData;
import org.opensearch.client.opensearch.OpenSearchClient;
import org.opensearch.client.opensearch._types.ErrorCause;
import org.opensearch.client.opensearch._types.FieldValue;
import org.opensearch.client.opensearch._types.OpenSearchException;
import org.opensearch.client.opensearch._types.Refresh;
import org.opensearch.client.opensearch.core.SearchRequest;
import org.opensearch.client.opensearch.core.SearchResponse;
import org.opensearch.client.opensearch.core.search.Hit;
import org.opensearch.client.opensearch.generic.OpenSearchClientException;
import org.opensearch.client.opensearch.generic.OpenSearchGenericClient.ClientOptions;
import org.opensearch.client.opensearch.generic.Requests;
import org.opensearch.client.opensearch.tasks.TaskInfo;
import org.opensearch.client.transport.TransportException;
import org.opensearch.client.transport.TransportOptions;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5Options;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5TransportBuilder;
import org.opensearch.client.transport.httpclient5.ResponseException;

/** Goes through the list of checks with opensearch-java. The test tells it the servers, and reads a line a check. */
class Client {
    static final String URL = System.getenv("WLMSERVER_URL"), USERS_URL = System.getenv("WLMSERVER_USERS_URL");
    static final String SEARCH = "indices:data/read/search";
    static final UnaryOperator<ApacheHttpClient5TransportBuilder> AS_IT_IS = b -> b;

    record Book(String title) {}

    /** A check of the list. */
    interface Check {
        void run() throws Exception;
    }

    /** A call that fails. */
    interface Call {
        Object run() throws Exception;
    }

    static void require(boolean holds, Object otherwise) {
        if (!holds) throw new AssertionError(String.valueOf(otherwise));
    }

    static OpenSearchClient connect(String url, UnaryOperator<ApacheHttpClient5TransportBuilder> more) {
        var builder = ApacheHttpClient5TransportBuilder.builder(HttpHost.create(URI.create(url)))
                .setConnectionConfigCallback(c -> c.setSocketTimeout(60, TimeUnit.SECONDS));
        return new OpenSearchClient(more.apply(builder).build());
    }

    static OpenSearchClient as(String user, String password) {
        var token = Base64.getEncoder().encodeToString((user + ":" + password).getBytes(StandardCharsets.UTF_8));
        return with(connect(USERS_URL, AS_IT_IS), "Authorization", "Basic " + token);
    }

    /** The same client, with a header for every request. */
    static OpenSearchClient with(OpenSearchClient client, String... headers) {
        TransportOptions.Builder options = ApacheHttpClient5Options.DEFAULT.toBuilder();
        for (int i = 0; i < headers.length; i += 2) options.addHeader(headers[i], headers[i + 1]);
        return client.withTransportOptions(options.build());
    }

    final OpenSearchClient client = connect(URL, AS_IT_IS);

    JsonObject raw(OpenSearchClient client, String method, String path, String body) throws Exception {
        var request = Requests.builder().method(method).endpoint(path);
        if (body != null) request.json(body);
        try (var response = client.generic().withClientOptions(ClientOptions.throwOnHttpErrors()).execute(request.build())) {
            return JsonProvider.provider().createReader(new StringReader(response.getBody().orElseThrow().bodyAsString())).readObject();
        }
    }

    JsonObject raw(String method, String path, String body) throws Exception {
        return raw(client, method, path, body);
    }

    String createGroup(String name, String blocks) throws Exception {
        var body = "{\"name\":\"" + name + "\",\"resiliency_mode\":\"enforced\",\"resource_limits\":{\"cpu\":0.1}," + blocks + "}";
        return raw("PUT", "/_wlm/workload_group", body).getString("_id");
    }

    static SearchRequest books(Map<String, Object> cost) {
        return SearchRequest.of(s -> cost.isEmpty() ? s.index("books") : s.index("books").ext("stub", JsonData.of(cost)));
    }

    static final SearchRequest FOREVER = books(Map.of("query_time", "10m"));

    SearchResponse<Book> searchIn(OpenSearchClient client, String group, SearchRequest request) throws IOException {
        return with(client, "workloadGroupId", group, "X-Opaque-Id", "report-7").search(request, Book.class);
    }

    CompletableFuture<SearchResponse<Book>> inBackground(String group, SearchRequest request) {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return searchIn(client, group, request);
            } catch (IOException e) {
                throw new CompletionException(e);
            }
        }, Thread::startVirtualThread);
    }

    /** Checks that a call fails with the client's error for this status. */
    static ErrorCause fails(int status, String type, Call call) throws Exception {
        try {
            throw new AssertionError("no error, but " + call.run());
        } catch (OpenSearchException e) {
            require(e.status() == status && (type.isEmpty() || type.equals(e.error().type())), e);
            return e.error();
        }
    }

    /** Checks the same of 429 and of 500, which the client leaves to its transport's error. */
    static ResponseException failsBelow(int status, String text, Call call) throws Exception {
        try {
            throw new AssertionError("no error, but " + call.run());
        } catch (ResponseException e) {
            require(e.status() == status && e.getMessage().contains(text), e);
            return e;
        }
    }

    /** Checks the same of 401 and 403, of which the client's error tells no more. */
    static void failsBare(String message, Call call) throws Exception {
        try {
            throw new AssertionError("no error, but " + call.run());
        } catch (IOException e) {
            require(e.getCause() instanceof TransportException && e.getMessage().equals(message), e);
        }
    }

    /** Checks the same of a raw request, whose error has no type of its own. */
    static void failsRaw(int status, String text, Call call) throws Exception {
        try {
            throw new AssertionError("no error, but " + call.run());
        } catch (OpenSearchClientException e) {
            var body = e.response().getBody().orElseThrow().bodyAsString();
            require(e.status() == status && body.contains(text), e.status() + " " + body);
        }
    }

    static Object end(CompletableFuture<?> call) throws Exception {
        try {
            return call.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    Map<String, TaskInfo> tasks() throws IOException {
        var found = new LinkedHashMap<String, TaskInfo>();
        for (var node : client.tasks().list(r -> r.actions(SEARCH).detailed(true)).nodes().values()) found.putAll(node.tasks());
        return found;
    }

    /** Waits for searches in these states and no others, and gives their ids. */
    Map<String, String> waitFor(String... states) throws Exception {
        for (long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30); ; Thread.sleep(20)) {
            var found = new TreeMap<String, String>();
            tasks().forEach((id, task) -> {
                if (task.status() != null && task.status().state() != null) found.put(task.status().state(), id);
            });
            if (found.keySet().equals(Set.of(states))) return found;
            require(System.nanoTime() < deadline, "there is " + found + ", not " + List.of(states));
        }
    }

    void product() throws Exception {
        var version = client.info().version();
        require("opensearch".equals(version.distribution()) && !version.number().isEmpty(), version.toJsonString());
    }

    void ping() throws Exception {
        require(client.ping().value(), "no");
    }

    void groups() throws Exception {
        var path = "/_wlm/workload_group";
        var id = createGroup("crud", "\"throttling\":{\"attribute\":\"group\",\"node_limit\":3}");
        var one = raw("GET", path + "/crud", null).getJsonArray("workload_groups").getJsonObject(0);
        require(one.getString("_id").equals(id) && one.getJsonObject("throttling").getInt("node_limit") == 3, one);
        var changed = raw("PUT", path + "/crud", "{\"throttling\":{\"node_limit\":5},\"queue\":{\"size_per_bucket\":7}}");
        require(changed.getJsonObject("throttling").getInt("node_limit") == 5, changed);
        var all = raw("GET", path, null).getJsonArray("workload_groups").getValuesAs(JsonObject.class);
        require(all.stream().anyMatch(g -> g.getString("name").equals("crud")), all);
        require(raw("DELETE", path + "/crud", null).getBoolean("acknowledged"), "not acknowledged");
        failsRaw(404, "resource_not_found_exception", () -> raw("GET", path + "/crud", null));
    }

    void settings() throws Exception {
        var key = "wlm.workload_group.mode";
        require(client.cluster().putSettings(r -> r.transient_(Map.of(key, JsonData.of("enabled")))).acknowledged(), "not acknowledged");
        var set = client.cluster().getSettings(r -> r.flatSettings(true)).transient_();
        require(set.size() == 1 && set.get(key).to(String.class).equals("enabled"), set);
        raw("PUT", "/_cluster/settings", "{\"transient\":{\"" + key + "\":null}}");
        require(client.cluster().getSettings().transient_().isEmpty(), "it is still there");
    }

    void bulk() throws Exception {
        client.indices().create(r -> r.index("books").settings(s -> s.numberOfShards(2).numberOfReplicas(0)));
        var made = client.bulk(r -> {
            for (int i = 0; i < 30; i++) {
                var id = i;
                r.operations(o -> o.index(d -> d.index("books").id("" + id).document(new Book("book " + id))));
            }
            return r.refresh(Refresh.True);
        });
        require(!made.errors() && made.items().size() == 30, made.items());
        client.indices().refresh(r -> r.index("books"));
        var again = client.bulk(r -> r.operations(o -> o.create(d -> d.index("books").id("1").document(new Book("again")))));
        require(again.errors() && again.items().get(0).status() == 409, again.items());
    }

    void search() throws Exception {
        var found = client.search(r -> r.index("books").size(5).query(q -> q.matchAll(m -> m)), Book.class).hits();
        require(found.total().value() == 30 && found.hits().size() == 5, found);
        require(found.hits().get(0).source().title().startsWith("book "), found.hits().get(0));
    }

    void count() throws Exception {
        var n = client.count(r -> r.index("books").query(q -> q.term(t -> t.field("title").value(FieldValue.of("x"))))).count();
        require(n == 30, n);
    }

    void msearch() throws Exception {
        var found = client.msearch(r -> r.index("books")
                .searches(s -> s.header(h -> h.index("books")).body(b -> b.size(1)))
                .searches(s -> s.header(h -> h.index("nosuch")).body(b -> b))
                .searches(s -> s.header(h -> h).body(b -> b.query(q -> q.matchAll(m -> m)))), Book.class).responses();
        require(found.size() == 3 && found.get(0).isResult() && found.get(1).isFailure() && found.get(2).isResult(), found);
        require(found.get(0).result().hits().hits().size() == 1, found.get(0));
        require(found.get(1).failure().error().type().equals("index_not_found_exception"), found.get(1));
    }

    void scroll() throws Exception {
        var ids = new HashSet<String>();
        var first = client.search(r -> r.index("books").size(7).scroll(t -> t.time("1m")), Book.class);
        var id = first.scrollId();
        for (List<Hit<Book>> page = first.hits().hits(); !page.isEmpty(); ) {
            page.forEach(h -> ids.add(h.id()));
            var current = id;
            var next = client.scroll(r -> r.scrollId(current).scroll(t -> t.time("1m")), Book.class);
            page = next.hits().hits();
            id = next.scrollId();
        }
        var last = id;
        require(client.clearScroll(r -> r.scrollId(last)).numFreed() == 1 && ids.size() == 30, ids);
    }

    // One search that runs and one that is parked, which the checks of tasks look at and end.
    Map<String, CompletableFuture<?>> calls = new TreeMap<>();
    Map<String, String> ids;

    void tasksList() throws Exception {
        var group = createGroup("tasks", "\"throttling\":{\"attribute\":\"group\",\"node_limit\":1},\"queue\":{\"size_per_bucket\":1}");
        calls.put("running", inBackground(group, FOREVER));
        waitFor("running");
        calls.put("waiting", inBackground(group, FOREVER));
        ids = waitFor("running", "waiting");
        var listed = tasks();
        require(listed.keySet().equals(Set.copyOf(ids.values())), listed.keySet());
        listed.forEach((id, task) -> require(
                task.cancellable() && "report-7".equals(task.headers().get("X-Opaque-Id")) && task.description().contains("books")
                        && task.runningTimeInNanos() > 0 && SEARCH.equals(task.action()), task.toJsonString()));
        var node = client.tasks().list(r -> r.actions(SEARCH).detailed(true)).nodes().values().iterator().next();
        require(node.name() != null && node.transportAddress() != null && node.host() != null && node.ip() != null && !node.roles().isEmpty(),
                node.toJsonString());
    }

    void tasksGet() throws Exception {
        for (var e : ids.entrySet()) {
            var answer = client.tasks().get(r -> r.taskId(e.getValue()));
            require(!answer.completed() && answer.task().action().equals(SEARCH) && answer.task().status().state().equals(e.getKey()),
                    answer.toJsonString());
        }
        fails(404, "resource_not_found_exception", () -> client.tasks().get(r -> r.taskId("nosuch:1")));
    }

    void cancel(String state) throws Exception {
        var answer = client.tasks().cancel(r -> r.taskId(ids.get(state)));
        require(answer.nodes().size() == 1 && answer.nodeFailures().isEmpty(), answer.toJsonString());
        failsBelow(500, "{\"root_cause\":[{\"type\":\"task_cancelled_exception\"", () -> end(calls.get(state)));
    }

    void error400() throws Exception {
        // The typed calls make no query of an unknown type.
        failsRaw(400, "parsing_exception", () -> raw("POST", "/_search", "{\"query\":{\"nosuch\":{}}}"));
        fails(400, "settings_exception", () -> client.cluster().putSettings(r -> r.transient_(Map.of("nosuch", JsonData.of(1)))));
    }

    void error401() throws Exception {
        failsBare("Unauthorized access", () -> as("ann", "wrong").info());
        require(as("ann", "secret").ping().value(), "no");
    }

    void error403() throws Exception {
        var change = Map.of("wlm.workload_group.mode", JsonData.of("enabled"));
        failsBare("Forbidden access", () -> as("bob", "secret").cluster().putSettings(r -> r.transient_(change)));
    }

    void error404() throws Exception {
        fails(404, "index_not_found_exception", () -> client.search(r -> r.index("nosuch"), Book.class));
    }

    void error405() throws Exception {
        failsRaw(405, "is not allowed for uri", () -> raw("DELETE", "/_wlm/stats", null));
    }

    void error429() throws Exception {
        var group = createGroup("full", "\"throttling\":{\"attribute\":\"group\",\"node_limit\":1}");
        var running = inBackground(group, FOREVER);
        var found = waitFor("running");
        failsBelow(429, "rejected_execution_exception", () -> searchIn(client, group, books(Map.of())));
        client.tasks().cancel(r -> r.taskId(found.get("running")));
        failsBelow(500, "", () -> end(running));
    }

    void error500() throws Exception {
        failsBelow(500, "search_phase_execution_exception", () -> client.search(books(Map.of("fail_shards", 2)), Book.class));
    }

    /** Searches until it is not refused, and each time waits as long as the refusal says, which only an interceptor sees. */
    SearchResponse<Book> searchPatiently(String group, AtomicInteger waited) throws Exception {
        var seconds = new AtomicLong();
        var patient = connect(URL, b -> b.setHttpClientConfigCallback(c -> c.addResponseInterceptorLast((response, entity, context) -> {
            var header = response.getFirstHeader("Retry-After");
            if (header != null) seconds.set(Long.parseLong(header.getValue()));
        })));
        while (true) {
            try {
                return searchIn(patient, group, books(Map.of()));
            } catch (ResponseException e) {
                if (e.status() != 429 || waited.incrementAndGet() > 10) throw e;
                Thread.sleep(1000 * seconds.get());
            }
        }
    }

    void retryAfter() throws Exception {
        var group = createGroup("patience", "\"throttling\":{\"attribute\":\"group\",\"node_limit\":1}");
        var running = inBackground(group, books(Map.of("query_time", "3s")));
        waitFor("running");
        var waited = new AtomicInteger();
        require(searchPatiently(group, waited).hits().total().value() == 30 && waited.get() > 0, waited);
        require(!((SearchResponse<?>) end(running)).timedOut(), "timed out");
    }

    void gzip() throws Exception {
        var squeezed = with(connect(URL, b -> b.setCompressionEnabled(true)), "X-Opaque-Id", "gzip");
        var found = squeezed.search(r -> r.index("books").size(30).query(q -> q.matchAll(m -> m)), Book.class);
        require(found.hits().hits().size() == 30, found);
    }

    void keepAlive() throws Exception {
        // With more than one, a request may come before the connection of the last one is back in the pool.
        var single = PoolingAsyncClientConnectionManagerBuilder.create().setMaxConnPerRoute(1).build();
        var c = with(connect(URL, b -> b.setHttpClientConfigCallback(h -> h.setConnectionManager(single))), "X-Opaque-Id", "keep-alive");
        fails(400, "", () -> c.cluster().putSettings(r -> r.transient_(Map.of("nosuch", JsonData.of(1)))));
        fails(404, "", () -> c.search(r -> r.index("nosuch"), Book.class));
        failsRaw(405, "", () -> raw(c, "DELETE", "/_wlm/stats", null));
        require(c.ping().value(), "no");
        require(!c.exists(r -> r.index("books").id("nosuch")).value(), "it exists");
        require(c.count(r -> r.index("books")).count() == 30, "not 30");
    }

    public static void main(String[] args) {
        var c = new Client();
        var checks = new LinkedHashMap<String, Check>();
        checks.put("product", c::product);
        checks.put("ping", c::ping);
        checks.put("groups", c::groups);
        checks.put("settings", c::settings);
        checks.put("bulk", c::bulk);
        checks.put("search", c::search);
        checks.put("count", c::count);
        checks.put("msearch", c::msearch);
        checks.put("scroll", c::scroll);
        checks.put("tasks list", c::tasksList);
        checks.put("tasks get", c::tasksGet);
        checks.put("tasks cancel parked", () -> c.cancel("waiting"));
        checks.put("tasks cancel running", () -> c.cancel("running"));
        checks.put("error 400", c::error400);
        checks.put("error 401", c::error401);
        checks.put("error 403", c::error403);
        checks.put("error 404", c::error404);
        checks.put("error 405", c::error405);
        checks.put("error 429", c::error429);
        checks.put("error 500", c::error500);
        checks.put("retry after", c::retryAfter);
        checks.put("gzip", c::gzip);
        checks.put("keep-alive", c::keepAlive);
        checks.forEach((name, check) -> {
            try {
                check.run();
                System.out.println("ok " + name);
            } catch (Exception | AssertionError e) {
                System.out.println("not ok " + name + ": " + (e + " " + e.getCause()).replaceAll("\\s+", " "));
            }
        });
        System.exit(0); // the clients' threads would hold it
    }
}
