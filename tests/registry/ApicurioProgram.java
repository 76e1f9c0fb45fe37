import io.apicurio.registry.rest.client.models.RuleViolationProblemDetails;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes records to a topic, or prints the records of a topic, with the serializers of Apicurio Registry.
 *
 * Arguments: "write", bootstrap servers, topic, schema, and the id of the record; or "read", bootstrap servers, topic and
 * the number of records. Further arguments name=value are settings.
 */
public class ApicurioProgram {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.serializer", "io.apicurio.registry.serde.avro.AvroKafkaSerializer");
        settings.put("value.deserializer", "io.apicurio.registry.serde.avro.AvroKafkaDeserializer");
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            if (pair[0].startsWith("apicurio.")) {
                settings.put(pair[0], pair[1]);
            }
        }
        if (arguments[0].equals("write")) {
            write(settings, arguments[2], new Schema.Parser().parse(arguments[3]), Long.parseLong(arguments[4]));
        } else {
            read(settings, arguments[2], Integer.parseInt(arguments[3]));
        }
        System.exit(0);
    }

    private static void write(Properties settings, String topic, Schema schema, long id) throws Exception {
        try (KafkaProducer<String, Object> producer = new KafkaProducer<>(settings)) {
            GenericData.Record order = new GenericData.Record(schema);
            order.put("id", id);
            order.put("note", "from Java");
            producer.send(new ProducerRecord<>(topic, order)).get();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof RuleViolationProblemDetails) {
                    System.err.println(((RuleViolationProblemDetails) cause).getDetail());
                }
            }
            throw error;
        }
    }

    private static void read(Properties settings, String topic, int count) {
        try (KafkaConsumer<String, Object> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (count > 0) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                    count--;
                }
            }
        }
    }
}
