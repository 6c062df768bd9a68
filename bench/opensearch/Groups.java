import java.io.IOException;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

import org.opensearch.ResourceNotFoundException;
import org.opensearch.cluster.ClusterState;
import org.opensearch.cluster.ClusterStateUpdateTask;
import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.metadata.Metadata;
import org.opensearch.cluster.metadata.WorkloadGroup;
import org.opensearch.cluster.node.DiscoveryNodes;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.UUIDs;
import org.opensearch.common.settings.ClusterSettings;
import org.opensearch.common.settings.IndexScopedSettings;
import org.opensearch.common.settings.Setting;
import org.opensearch.common.settings.Settings;
import org.opensearch.common.settings.SettingsFilter;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.env.Environment;
import org.opensearch.env.NodeEnvironment;
import org.opensearch.plugins.ActionPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.repositories.RepositoriesService;
import org.opensearch.rest.BaseRestHandler;
import org.opensearch.rest.BytesRestResponse;
import org.opensearch.rest.RestChannel;
import org.opensearch.rest.RestController;
import org.opensearch.rest.RestHandler;
import org.opensearch.rest.RestRequest;
import org.opensearch.script.ScriptService;
import org.opensearch.threadpool.ThreadPool;
import org.opensearch.transport.client.Client;
import org.opensearch.transport.client.node.NodeClient;
import org.opensearch.watcher.ResourceWatcherService;
import org.opensearch.wlm.ResourceType;
import org.opensearch.wlm.WlmMode;
import org.opensearch.wlm.WorkloadManagementSettings;

/**
 * The four handlers of _wlm/workload_group. The plugin that has them is not on Maven Central; the parsing, the checks and
 * the printing of a group are in OpenSearch's core, and this stands on those.
 */
public final class Groups extends Plugin implements ActionPlugin {
    private static final String ALL = "/_wlm/workload_group";
    private static final String ONE = ALL + "/{name}";
    private static final Setting<Integer> MOST =
        Setting.intSetting("node.workload_group.max_count", 100, 1, 100, Setting.Property.Dynamic, Setting.Property.NodeScope);

    private ClusterService cluster;

    @Override
    public List<Setting<?>> getSettings() {
        return List.of(MOST);
    }

    @Override
    public Collection<Object> createComponents(Client client, ClusterService cluster, ThreadPool pool, ResourceWatcherService watcher,
            ScriptService scripts, NamedXContentRegistry content, Environment environment, NodeEnvironment node,
            NamedWriteableRegistry writeables, IndexNameExpressionResolver names, Supplier<RepositoriesService> repositories) {
        this.cluster = cluster;
        return List.of();
    }

    @Override
    public List<RestHandler> getRestHandlers(Settings settings, RestController controller, ClusterSettings clusterSettings,
            IndexScopedSettings indexSettings, SettingsFilter filter, IndexNameExpressionResolver names, Supplier<DiscoveryNodes> nodes) {
        return List.of(
            new Handler("create", List.of(route("PUT", ALL), route("POST", ALL)), this::create),
            new Handler("update", List.of(route("PUT", ONE), route("POST", ONE)), this::update),
            new Handler("get", List.of(route("GET", ALL), route("GET", ONE)), this::get),
            new Handler("delete", List.of(route("DELETE", ONE)), this::delete));
    }

    private static RestHandler.Route route(String method, String path) {
        return new RestHandler.Route(RestRequest.Method.valueOf(method), path);
    }

    private interface Prepare {
        Answer prepare(RestRequest request) throws IOException;
    }

    private interface Answer {
        void to(RestChannel channel) throws Exception;
    }

    private static final class Handler extends BaseRestHandler {
        private final String name;
        private final List<Route> routes;
        private final Prepare prepare;

        Handler(String name, List<Route> routes, Prepare prepare) {
            this.name = name;
            this.routes = routes;
            this.prepare = prepare;
        }

        @Override
        public String getName() {
            return name + "_workload_group";
        }

        @Override
        public List<Route> routes() {
            return routes;
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) throws IOException {
            return prepare.prepare(request)::to;
        }
    }

    private Answer create(RestRequest request) throws IOException {
        checkMode();
        takeTimeouts(request);
        WorkloadGroup group;
        try (XContentParser parser = request.contentParser()) {
            group = WorkloadGroup.Builder.fromXContent(parser)._id(UUIDs.randomBase64UUID()).updatedAt(System.currentTimeMillis()).build();
        }
        return channel -> change(channel, group, known -> {
            if (known.size() >= MOST.get(cluster.state().metadata().settings())) {
                throw new IllegalStateException("too many groups");
            }
            if (named(known, group.getName()) != null) {
                throw new IllegalArgumentException("the name is in use");
            }
            checkSum(known, group);
            return group;
        });
    }

    private Answer update(RestRequest request) throws IOException {
        checkMode();
        takeTimeouts(request);
        String name = request.param("name");
        WorkloadGroup.Builder change;
        try (XContentParser parser = request.contentParser()) {
            change = WorkloadGroup.Builder.fromXContent(parser);
        }
        WorkloadGroup.validateName(name);
        return channel -> change(channel, null, known -> {
            WorkloadGroup group = WorkloadGroup.updateExistingWorkloadGroup(existing(known, name), change.getMutableWorkloadGroupFragment());
            checkSum(known, group);
            return group;
        });
    }

    private Answer delete(RestRequest request) {
        checkMode();
        takeTimeouts(request);
        String name = request.param("name");
        return channel -> submit(channel, state -> {
            WorkloadGroup group = existing(state.metadata().workloadGroups(), name);
            return ClusterState.builder(state).metadata(Metadata.builder(state.metadata()).remove(group)).build();
        }, () -> {
            XContentBuilder body = channel.newBuilder().startObject().field("acknowledged", true).endObject();
            channel.sendResponse(new BytesRestResponse(RestStatus.OK, body));
        });
    }

    private Answer get(RestRequest request) {
        takeTimeouts(request);
        request.paramAsBoolean("local", false);
        String name = request.param("name");
        if (name != null) {
            WorkloadGroup.validateName(name);
        }
        return channel -> {
            Map<String, WorkloadGroup> known = cluster.state().metadata().workloadGroups();
            Collection<WorkloadGroup> shown = name == null ? known.values() : List.of(existing(known, name));
            XContentBuilder body = channel.newBuilder().startObject().startArray("workload_groups");
            for (WorkloadGroup group : shown) {
                group.toXContent(body, request);
            }
            channel.sendResponse(new BytesRestResponse(RestStatus.OK, body.endArray().endObject()));
        };
    }

    private static void takeTimeouts(RestRequest request) {
        for (String name : List.of("timeout", "cluster_manager_timeout", "master_timeout")) {
            request.paramAsTime(name, null);
        }
    }

    private void checkMode() {
        ClusterState state = cluster.state();
        Settings all = Settings.builder().put(cluster.getSettings()).put(state.metadata().settings()).build();
        if (WorkloadManagementSettings.WLM_MODE_SETTING.get(all) != WlmMode.ENABLED) {
            throw new IllegalStateException("workload management is not enabled");
        }
    }

    private static WorkloadGroup named(Map<String, WorkloadGroup> known, String name) {
        return known.values().stream().filter(g -> g.getName().equals(name)).findFirst().orElse(null);
    }

    private static WorkloadGroup existing(Map<String, WorkloadGroup> known, String name) {
        WorkloadGroup group = named(known, name);
        if (group == null) {
            throw new ResourceNotFoundException("no such group");
        }
        return group;
    }

    /** Refuses a group that would lift the sum of a resource over all groups above 1. */
    private static void checkSum(Map<String, WorkloadGroup> known, WorkloadGroup group) {
        Map<ResourceType, Double> sums = new EnumMap<>(ResourceType.class);
        known.values().stream().filter(g -> !g.getName().equals(group.getName()))
            .forEach(g -> g.getResourceLimits().forEach((type, limit) -> sums.merge(type, limit, Double::sum)));
        group.getResourceLimits().forEach((type, limit) -> {
            if (sums.merge(type, limit, Double::sum) > 1.0) {
                throw new IllegalArgumentException("more than all of a resource");
            }
        });
    }

    private interface Decide {
        WorkloadGroup group(Map<String, WorkloadGroup> known);
    }

    /** Puts into the cluster state the group that is decided on, and answers with it. */
    private void change(RestChannel channel, WorkloadGroup created, Decide decide) {
        WorkloadGroup[] put = {created};
        submit(channel, state -> {
            put[0] = decide.group(state.metadata().workloadGroups());
            return ClusterState.builder(state).metadata(Metadata.builder(state.metadata()).put(put[0])).build();
        }, () -> channel.sendResponse(new BytesRestResponse(RestStatus.OK, put[0].toXContent(channel.newBuilder(), channel.request()))));
    }

    private interface Action {
        void run() throws IOException;
    }

    private void submit(RestChannel channel, UnaryOperator<ClusterState> update, Action done) {
        cluster.submitStateUpdateTask("workload groups", new ClusterStateUpdateTask() {
            @Override
            public ClusterState execute(ClusterState state) {
                return update.apply(state);
            }

            @Override
            public void onFailure(String source, Exception e) {
                answer(() -> channel.sendResponse(new BytesRestResponse(channel, e)));
            }

            @Override
            public void clusterStateProcessed(String source, ClusterState before, ClusterState after) {
                answer(done);
            }
        });
    }

    private static void answer(Action action) {
        try {
            action.run();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
