import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Prints the names, groups and tags of the metrics of Java's clients after they have written and read records.
 *
 * <p>Arguments: BOOTSTRAP TOPIC. A line has the client, the group, the name and the names of the tags, separated by tabs.
 */
public final class MetricNames {
  private static final int RECORDS = 10;

  private static void print(String client, Map<MetricName, ? extends Metric> metrics) {
    for (MetricName name : metrics.keySet()) {
      System.out.println(
          client + "\t" + name.group() + "\t" + name.name() + "\t" + String.join(",", name.tags().keySet()));
    }
  }

  private static void consume(String bootstrap, String topic, String protocol) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("client.id", "names");
    properties.put("group.id", "java-" + protocol);
    properties.put("group.protocol", protocol);
    properties.put("auto.offset.reset", "earliest");
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of(topic));
      for (int read = 0; read < RECORDS; ) {
        read += consumer.poll(Duration.ofMillis(200)).count();
      }
      consumer.commitSync();
      print("consumer-" + protocol, consumer.metrics());
    }
  }

  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("client.id", "names");
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int sent = 0; sent < RECORDS; sent++) {
        producer.send(new ProducerRecord<>(arguments[1], new byte[100])).get();
      }
      print("producer", producer.metrics());
    }
    consume(arguments[0], arguments[1], "classic");
    consume(arguments[0], arguments[1], "consumer");
  }
}
