// A producer and a consumer of kafka-clients, any release from 2.4 on, that carry the lines of tests/clients/records.py.
//
//   Probe produce BOOTSTRAP TOPIC CODEC          reads lines, writes their records, prints how many
//   Probe consume BOOTSTRAP TOPIC COUNT          reads the first COUNT records, prints their lines
//   Probe group   BOOTSTRAP TOPIC COUNT GROUP    the same as a member of GROUP, commits
//
// More arguments, KEY=VALUE, are settings of the client.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Probe {
    private static final long DEADLINE_MS = 60_000;

    public static void main(String[] args) throws Exception {
        boolean isGroup = args[0].equals("group");
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        for (String pair : Arrays.asList(args).subList(isGroup ? 5 : 4, args.length)) {
            int equals = pair.indexOf('=');
            settings.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        if (args[0].equals("produce")) {
            settings.put("compression.type", args[3]);
            settings.put("acks", "all");
            produce(settings, args[2]);
        } else {
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            if (isGroup) settings.put("group.id", args[4]);
            consume(settings, args[2], Integer.parseInt(args[3]), isGroup);
        }
    }

    private static void produce(Properties settings, String topic) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t", -1);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, Integer.parseInt(fields[0]),
                        Long.parseLong(fields[2]), bytes(fields[3]), bytes(fields[4]));
                for (String pair : fields[5].split(",")) {
                    if (pair.isEmpty()) continue;
                    int equals = pair.indexOf('=');
                    String name = new String(bytes(pair.substring(0, equals)), StandardCharsets.UTF_8);
                    record.headers().add(name, bytes(pair.substring(equals + 1)));
                }
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : sent) future.get();
        }
        System.out.println(sent.size());
    }

    private static void consume(Properties settings, String topic, int count, boolean isGroup) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            if (isGroup) {
                consumer.subscribe(List.of(topic));
            } else {
                List<TopicPartition> partitions = new ArrayList<>();
                for (PartitionInfo info : consumer.partitionsFor(topic)) {
                    partitions.add(new TopicPartition(topic, info.partition()));
                }
                consumer.assign(partitions);
            }
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            int received = 0;
            while (received < count) {
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("only " + received + " of " + count + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    out.println(line(record));
                    received++;
                }
            }
            if (isGroup) consumer.commitSync();
        }
        out.flush();
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(hex(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + hex(header.value()));
        }
        return String.join("\t", String.valueOf(record.partition()), String.valueOf(record.offset()),
                String.valueOf(record.timestamp()), hex(record.key()), hex(record.value()), String.join(",", headers));
    }

    private static byte[] bytes(String hex) {
        if (hex.equals("-")) return null;
        byte[] result = new byte[hex.length() / 2];
        for (int i = 0; i < result.length; i++) {
            result[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return result;
    }

    private static String hex(byte[] bytes) {
        if (bytes == null) return "-";
        StringBuilder result = new StringBuilder(2 * bytes.length);
        for (byte b : bytes) result.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
        return result.toString();
    }
}
