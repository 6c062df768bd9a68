import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/**
 * One OpenSearch node, put together from its libraries: OneNode FOLDER PORT [SETTING=VALUE...]. It runs until the process is
 * ended, or with UNTIL_EOF in the environment until its input is: whoever started it has then gone, in whatever way.
 */
final class OneNode extends Node {
    private OneNode(Settings settings, Path config) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "bench"),
            List.of(plugin("netty4", "org.opensearch.transport.Netty4ModulePlugin"), plugin("groups", Groups.class.getName())),
            false);
    }

    private static PluginInfo plugin(String name, String type) {
        return new PluginInfo(name, name, "1", Version.CURRENT, "21", type, null, List.of(), false);
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]).toAbsolutePath();
        int port = Integer.parseInt(arguments[1]);
        Path config = Files.createDirectories(folder.resolve("config"));
        Settings.Builder settings = Settings.builder()
            .put("path.home", folder.toString())
            .put("node.name", "bench")
            .put("cluster.name", "bench")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", port)
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        for (int i = 2; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        Node node = new OneNode(settings.build(), config).start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }));
        if (System.getenv("UNTIL_EOF") == null) {
            Thread.currentThread().join();
        }
        while (System.in.read() >= 0) { }
        System.exit(0);
    }
}
