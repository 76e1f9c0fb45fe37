// What Java's client computes, line by line of standard input, as JSON; for each a line of standard output that
// begins with "= ".
//
//   {"murmur2": "<hex>"}                                          -> the hash
//   {"assignor": "range", "counts": {"t": 3}, "racks": {"t": [["a"], ["a", "b"], []]}, "members":
//       {"m0": {"subscription": "<hex>", "instance": null}}}      -> {"m0": ["t-0", ...]}
//
// A subscription is what a member sends in JoinGroup.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;

public class Agreement {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Node NODE = new Node(0, "localhost", 9092);

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            Object answer = asked.has("murmur2")
                    ? (Object) Utils.murmur2(HexFormat.of().parseHex(asked.get("murmur2").asText()))
                    : assign(asked);
            out.println("= " + JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    private static Map<String, List<String>> assign(JsonNode asked) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (Iterator<String> topics = asked.get("counts").fieldNames(); topics.hasNext();) {
            String topic = topics.next();
            for (int number = 0; number < asked.get("counts").get(topic).asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : asked.get("racks").get(topic).get(number)) {
                    replicas.add(new Node(replicas.size(), "localhost", 9092, rack.asText()));
                }
                Node[] nodes = replicas.isEmpty() ? new Node[] {NODE} : replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic, number, NODE, nodes, nodes));
            }
        }
        Cluster cluster = new Cluster("c", List.of(NODE), partitions, Set.of(), Set.of());
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (Iterator<String> members = asked.get("members").fieldNames(); members.hasNext();) {
            String id = members.next();
            JsonNode member = asked.get("members").get(id);
            byte[] said = HexFormat.of().parseHex(member.get("subscription").asText());
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(said));
            JsonNode instance = member.get("instance");
            subscription.setGroupInstanceId(instance.isNull() ? Optional.empty() : Optional.of(instance.asText()));
            subscriptions.put(id, subscription);
        }
        Map<String, Assignment> assigned =
                assignor(asked.get("assignor").asText()).assign(cluster, new GroupSubscription(subscriptions))
                        .groupAssignment();
        Map<String, List<String>> answer = new TreeMap<>();
        assigned.forEach((id, assignment) -> {
            List<String> given = new ArrayList<>();
            for (TopicPartition each : assignment.partitions()) given.add(each.toString());
            answer.put(id, given);
        });
        return answer;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }
}
