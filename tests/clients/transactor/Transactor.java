// Transactions of kafka-clients from 0.11 to 4.x, command by command: see transactor.py. What only some releases have is
// called by its name.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactor {
    private static final Map<String, KafkaProducer<String, String>> PRODUCERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println("ok\t" + answer(line.split("\t", -1)));
            } catch (Exception error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                out.println("error\t" + cause.toString().replace('\n', ' '));
            }
        }
    }

    private static String answer(String[] words) throws Exception {
        if (words[0].equals("seen")) return seen(words[1], words[2], words[3]);
        if (words[0].equals("init")) {
            PRODUCERS.put(words[1], started(words[2], words[3], words[4]));
            return "";
        }
        KafkaProducer<String, String> producer = PRODUCERS.get(words[1]);
        switch (words[0]) {
            case "begin": producer.beginTransaction(); break;
            case "send": send(producer, words); break;
            case "offsets": sendOffsets(producer, words[2], words[3], Long.parseLong(words[4])); break;
            case "commit": producer.commitTransaction(); break;
            case "abort": producer.abortTransaction(); break;
            default: throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    private static KafkaProducer<String, String> started(String bootstrap, String id, String timeoutMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", timeoutMs);
        settings.put("max.block.ms", "30000");
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<String, String> producer, String[] words) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 3; i < words.length; i++) sent.add(producer.send(new ProducerRecord<>(words[2], 0, null, words[i])));
        producer.flush();
        for (Future<RecordMetadata> future : sent) future.get();
    }

    private static void sendOffsets(KafkaProducer<String, String> producer, String group, String topic, long offset)
            throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
                Collections.singletonMap(new TopicPartition(topic, 0), new OffsetAndMetadata(offset));
        Object name = group;
        Class<?> nameClass = String.class;
        try {
            nameClass = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            name = nameClass.getConstructor(String.class).newInstance(group);
        } catch (ClassNotFoundException before) {
            // the group's name it is, before 2.5
        }
        KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, nameClass).invoke(producer, offsets, name);
    }

    @SuppressWarnings("unchecked")
    private static String seen(String bootstrap, String topic, String isolation) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", "false");
        Method poll;
        Object pollTime;
        try {
            poll = KafkaConsumer.class.getMethod("poll", Duration.class);
            pollTime = Duration.ofMillis(100);
        } catch (NoSuchMethodException before) {
            poll = KafkaConsumer.class.getMethod("poll", long.class);
            pollTime = 100L;
        }
        List<String> words = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partition = Collections.singletonList(new TopicPartition(topic, 0));
            consumer.assign(partition);
            consumer.seekToBeginning(partition);
            long end = consumer.endOffsets(partition).values().iterator().next();
            while (consumer.position(partition.get(0)) < end) {
                for (ConsumerRecord<String, String> record
                        : (ConsumerRecords<String, String>) poll.invoke(consumer, pollTime)) {
                    words.add(record.value());
                }
            }
        }
        return String.join("\t", words);
    }
}
