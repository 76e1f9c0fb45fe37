// Producers and chains of Java's client for tests of clusters, which run until their standard input ends.
//
//   JavaTraffic produce BOOTSTRAP TOPIC PARTITIONS NAME RATE      `sent PARTITION NUMBER OFFSET` for each record; the
//                                                                 offset is -1 if its delivery is not known
//   JavaTraffic chain BOOTSTRAP SOURCE TARGET NAME                `committed COUNT` for each transaction
//
// A chain ends after any error: what it leaves open is for the next one to abort.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class JavaTraffic {
    private static final AtomicBoolean IS_STOPPED = new AtomicBoolean();

    public static void main(String[] args) throws Exception {
        Thread input = new Thread(JavaTraffic::awaitEndOfInput);
        input.setDaemon(true);
        input.start();
        if (args[0].equals("produce")) {
            produce(args[1], args[2], Integer.parseInt(args[3]), args[4], Double.parseDouble(args[5]));
        } else {
            chain(args[1], args[2], args[3], args[4]);
        }
    }

    private static void awaitEndOfInput() {
        try {
            while (System.in.read() >= 0) { }
        } catch (java.io.IOException error) {
            error.printStackTrace();
        }
        IS_STOPPED.set(true);
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("metadata.max.age.ms", "1000");
        settings.put("reconnect.backoff.max.ms", "500");
        return settings;
    }

    private static void produce(String bootstrap, String topic, int partitions, String name, double rate)
            throws InterruptedException {
        Properties settings = settings(bootstrap);
        settings.put("acks", "all");
        settings.put("linger.ms", "2");
        settings.put("delivery.timeout.ms", "60000");
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        for (int index = 0; !IS_STOPPED.get(); index++) {
            int partition = index % partitions;
            int number = index / partitions;
            byte[] value = (name + "/" + partition + "/" + number).getBytes(StandardCharsets.UTF_8);
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                if (error != null) System.err.println(error);
                long offset = error != null || !metadata.hasOffset() ? -1 : metadata.offset();
                System.out.println("sent " + partition + " " + number + " " + offset);
            });
            Thread.sleep((long) (1000 / rate));
        }
        producer.close();
    }

    private static void chain(String bootstrap, String source, String target, String name) {
        Properties settings = settings(bootstrap);
        settings.put("transactional.id", name);
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        settings = settings(bootstrap);
        settings.put("group.id", name);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "6000");
        settings.put("max.poll.records", "50");
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(source));
        while (!IS_STOPPED.get()) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) copy(records, producer, consumer, target);
        }
        producer.close(Duration.ZERO);
        consumer.close();
    }

    private static void copy(ConsumerRecords<byte[], byte[]> records, KafkaProducer<byte[], byte[]> producer,
            KafkaConsumer<byte[], byte[]> consumer, String target) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
        System.out.println("committed " + records.count());
    }
}
