// Consumes, transforms and produces in transactions until it is killed or fenced; see chain.py.
//
//   Chain BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID
//
// Prints `committed COUNT` after each transaction. Ends with 3 when it is fenced, with 1 after any other error: what it
// leaves open is for the next one to abort.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Chain {
    private static final int FENCED = 3;

    public static void main(String[] args) {
        try {
            run(args[0], args[1], args[2], args[3], args[4]);
        } catch (Exception error) {
            error.printStackTrace();
            Throwable cause = error;
            while (cause != null && !isFence(cause)) cause = cause.getCause();
            Runtime.getRuntime().halt(cause == null ? 1 : FENCED);
        }
    }

    private static boolean isFence(Throwable error) {
        return error instanceof ProducerFencedException || error instanceof InvalidProducerEpochException;
    }

    private static void run(String bootstrap, String source, String target, String group, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", "10000");
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "2500");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("max.poll.records", "2");
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(source));
        while (true) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) carry(records, producer, consumer, target);
        }
    }

    private static void carry(ConsumerRecords<byte[], byte[]> records, KafkaProducer<byte[], byte[]> producer,
            KafkaConsumer<byte[], byte[]> consumer, String target) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            byte[] done = ("done " + new String(record.value(), StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8);
            producer.send(new ProducerRecord<>(target, record.partition(), null, done));
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
        System.out.println("committed " + records.count());
    }
}
