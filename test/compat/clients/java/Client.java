import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.NamingEvent;
import com.alibaba.nacos.api.naming.pojo.Instance;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;

/** A client of nacos-client 1.x, driven by lines on standard input: see client_test.go for the words. */
public class Client {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static synchronized void say(Map<String, ?> event) {
        try {
            System.out.println(JSON.writeValueAsString(event));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, Object> host(Instance i) {
        return Map.of("ip", i.getIp(), "port", i.getPort(), "healthy", i.isHealthy(), "metadata", i.getMetadata());
    }

    private static void obey(NamingService naming, String[] words) throws Exception {
        String service = words[1];
        switch (words[0]) {
            case "register" -> {
                Instance instance = new Instance();
                instance.setIp(words[2]);
                instance.setPort(Integer.parseInt(words[3]));
                if (words.length > 4) {
                    instance.setMetadata(JSON.readValue(words[4], JSON.getTypeFactory().constructMapType(Map.class, String.class, String.class)));
                }
                naming.registerInstance(service, instance);
            }
            case "deregister" -> naming.deregisterInstance(service, words[2], Integer.parseInt(words[3]));
            case "subscribe" -> naming.subscribe(service, event -> {
                List<Map<String, Object>> hosts = ((NamingEvent) event).getInstances().stream().map(Client::host).collect(Collectors.toList());
                say(Map.of("event", "hosts", "service", service, "hosts", hosts));
            });
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("serverAddr", args[0]);
        settings.put("namespace", args[1]);
        settings.put("username", args[2]);
        settings.put("password", args[3]);
        NamingService naming = NacosFactory.createNamingService(settings);
        say(Map.of("event", "ready"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                obey(naming, words);
                say(Map.of("event", "done", "word", words[0]));
            } catch (Exception e) {
                say(Map.of("event", "failed", "word", words[0], "why", String.valueOf(e)));
            }
        }
        System.exit(0);
    }
}
