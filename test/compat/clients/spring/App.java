package compat;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.client.discovery.DiscoveryClient;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application of Spring Cloud Alibaba, driven by lines on standard input: see client_test.go for the words. It
 * registers itself when it starts and deregisters when its context closes; it looks services up as consumers do, and
 * so sees healthy instances only.
 */
@SpringBootApplication
public class App {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String[] settings;
    private final Map<String, List<Map<String, Object>>> seen = new HashMap<>();
    private final ScheduledExecutorService looking = Executors.newSingleThreadScheduledExecutor();
    private ConfigurableApplicationContext context;

    public App() {
        this.settings = new String[0];
    }

    private App(String[] settings) {
        this.settings = settings;
    }

    private static synchronized void say(Map<String, ?> event) {
        try {
            System.out.println(JSON.writeValueAsString(event));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, Object> map(Object... pairs) {
        Map<String, Object> m = new HashMap<>();
        for (int n = 0; n < pairs.length; n += 2) {
            m.put((String) pairs[n], pairs[n + 1]);
        }
        return m;
    }

    private void register(String[] words) throws Exception {
        String discovery = "--spring.cloud.nacos.discovery.";
        List<String> args = new ArrayList<>();
        args.add("--spring.application.name=" + words[1]);
        args.add("--server.port=0");
        args.add("--server.address=127.0.0.1");
        args.add("--spring.main.banner-mode=off");
        args.add("--logging.level.root=ERROR");
        args.add(discovery + "server-addr=" + settings[0]);
        args.add(discovery + "namespace=" + settings[1]);
        args.add(discovery + "username=" + settings[2]);
        args.add(discovery + "password=" + settings[3]);
        args.add(discovery + "ip=" + words[2]);
        args.add(discovery + "port=" + words[3]);
        for (Object one : JSON.readValue(words[4], Map.class).entrySet()) {
            Map.Entry<?, ?> pair = (Map.Entry<?, ?>) one;
            args.add(discovery + "metadata." + pair.getKey() + "=" + pair.getValue());
        }
        context = new SpringApplicationBuilder(App.class).run(args.toArray(new String[0]));
    }

    private void look(String service) {
        List<Map<String, Object>> hosts = new ArrayList<>();
        for (ServiceInstance i : context.getBean(DiscoveryClient.class).getInstances(service)) {
            hosts.add(map("ip", i.getHost(), "port", i.getPort(), "healthy", true, "metadata", i.getMetadata()));
        }
        if (!hosts.equals(seen.put(service, hosts))) {
            say(map("event", "hosts", "service", service, "hosts", hosts));
        }
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "register":
                register(words);
                break;
            case "deregister":
                context.close();
                break;
            case "subscribe":
                looking.scheduleWithFixedDelay(() -> {
                    try {
                        look(words[1]);
                    } catch (RuntimeException e) { // the registry is away: look again
                        System.err.println(e);
                    }
                }, 0, 100, TimeUnit.MILLISECONDS);
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        App app = new App(args);
        say(map("event", "ready"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                app.obey(words);
                say(map("event", "done", "word", words[0]));
            } catch (Exception e) {
                say(map("event", "failed", "word", words[0], "why", String.valueOf(e)));
            }
        }
        System.exit(0);
    }
}
