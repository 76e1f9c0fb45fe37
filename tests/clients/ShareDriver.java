// Share consumers of Java, driven line by line as share_driver.py drives those of librdkafka: words separated by tabs on
// standard input, one line of JSON on standard output for each of them.
//
//   open NAME KEY=VALUE...     subscribe NAME TOPIC...    poll NAME MS        [[partition, offset, count, value], ...]
//   ack NAME TOPIC PARTITION OFFSET TYPE                  commit NAME         {partition: error or ""}
//   close NAME

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareDriver {
    private static final Map<String, KafkaShareConsumer<String, String>> CONSUMERS = new HashMap<>();
    // The records that were delivered last, by member, topic, partition and offset.
    private static final Map<String, ConsumerRecord<String, String>> RECORDS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(run(line.split("\t")));
            System.out.flush();
        }
    }

    private static String run(String[] words) {
        String name = words[1];
        KafkaShareConsumer<String, String> consumer = CONSUMERS.get(name);
        switch (words[0]) {
            case "open":
                CONSUMERS.put(name, open(Arrays.copyOfRange(words, 2, words.length)));
                return "null";
            case "subscribe":
                consumer.subscribe(Arrays.asList(words).subList(2, words.length));
                return "null";
            case "poll":
                return poll(name, consumer, Duration.ofMillis(Long.parseLong(words[2])));
            case "ack":
                AcknowledgeType type = AcknowledgeType.valueOf(words[5]);
                consumer.acknowledge(RECORDS.get(key(name, words[2], words[3], words[4])), type);
                return "null";
            case "commit":
                return results(consumer.commitSync());
            case "close":
                CONSUMERS.remove(name).close();
                return "null";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static KafkaShareConsumer<String, String> open(String[] settings) {
        Properties properties = new Properties();
        for (String setting : settings) {
            int end = setting.indexOf('=');
            properties.put(setting.substring(0, end), setting.substring(end + 1));
        }
        return new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private static String key(Object... parts) {
        return Arrays.toString(parts);
    }

    private static String poll(String name, KafkaShareConsumer<String, String> consumer, Duration timeout) {
        StringJoiner shown = new StringJoiner(", ", "[", "]");
        for (ConsumerRecord<String, String> each : consumer.poll(timeout)) {
            RECORDS.put(key(name, each.topic(), each.partition(), each.offset()), each);
            shown.add(String.format("[%d, %d, %d, \"%s\"]", each.partition(), each.offset(),
                    each.deliveryCount().orElse((short) 0), each.value()));
        }
        return shown.toString();
    }

    private static String results(Map<TopicIdPartition, Optional<KafkaException>> found) {
        StringJoiner shown = new StringJoiner(", ", "{", "}");
        found.forEach((partition, error) -> shown.add(String.format("\"%d\": \"%s\"", partition.partition(),
                error.map(each -> Errors.forException(each).name()).orElse(""))));
        return shown.toString();
    }
}
