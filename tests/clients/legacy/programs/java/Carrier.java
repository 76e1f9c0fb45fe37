// Java's kafka-clients from 0.10 to 4.x: see PROTOCOL.md. What only some releases have is called by its name.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Carrier {
    private static final long DEADLINE_MS = 100_000;
    private static final Object POLL_TIME;
    private static final Method POLL;
    // Since 0.11: records have headers.
    private static final Method HEADERS_TO_SEND = method(ProducerRecord.class, "headers");
    private static final Method HEADERS_READ = method(ConsumerRecord.class, "headers");
    private static final Method ADD, NAME, VALUE;

    static {
        Method byDuration = method(KafkaConsumer.class, "poll", Duration.class);
        POLL = byDuration != null ? byDuration : method(KafkaConsumer.class, "poll", long.class);
        POLL_TIME = byDuration != null ? (Object) Duration.ofMillis(200) : (Object) 200L;
        boolean known = HEADERS_TO_SEND != null;
        Class<?> header = known ? named("org.apache.kafka.common.header.Header") : null;
        Class<?> headers = known ? named("org.apache.kafka.common.header.Headers") : null;
        ADD = known ? method(headers, "add", String.class, byte[].class) : null;
        NAME = known ? method(header, "key") : null;
        VALUE = known ? method(header, "value") : null;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            Properties settings = new Properties();
            settings.put("bootstrap.servers", fields[1]);
            for (String pair : args) settings.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
            try {
                int count = fields[0].equals("produce")
                        ? produce(settings, in, fields[2], fields[3], Integer.parseInt(fields[4]))
                        : consume(settings, out, fields[2], Integer.parseInt(fields[3]),
                                Integer.parseInt(fields[4]), fields[5]);
                out.println("ok\t" + count);
                out.flush();
            } catch (Exception error) {
                // After a failure the lines that follow are nobody's: the program ends.
                out.println("error\t" + error);
                out.flush();
                throw error;
            }
        }
    }

    private static int produce(Properties settings, BufferedReader in, String topic, String codec, int count)
            throws Exception {
        settings.put("compression.type", codec);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        // The old ones do not retry unless told to, and out of order if several requests are under way.
        settings.put("retries", "5");
        settings.put("max.in.flight.requests.per.connection", "1");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                String[] fields = in.readLine().split("\t", -1);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, Integer.parseInt(fields[0]),
                        Long.parseLong(fields[2]), bytes(fields[3]), bytes(fields[4]));
                if (HEADERS_TO_SEND != null) addHeaders(HEADERS_TO_SEND.invoke(record), fields[5]);
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : sent) future.get();
        }
        return sent.size();
    }

    private static void addHeaders(Object headers, String pairs) throws Exception {
        for (String pair : pairs.split(",")) {
            if (pair.isEmpty()) continue;
            int equals = pair.indexOf('=');
            String name = new String(bytes(pair.substring(0, equals)), StandardCharsets.UTF_8);
            ADD.invoke(headers, name, bytes(pair.substring(equals + 1)));
        }
    }

    @SuppressWarnings("unchecked")
    private static int consume(Properties settings, PrintStream out, String topic, int partitions, int count,
            String group) throws Exception {
        boolean isGroup = !group.equals("-");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("metadata.max.age.ms", "2000");
        if (isGroup) settings.put("group.id", group);
        int received = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            if (isGroup) {
                consumer.subscribe(Arrays.asList(topic));
            } else {
                List<TopicPartition> assigned = new ArrayList<>();
                for (int number = 0; number < partitions; number++) assigned.add(new TopicPartition(topic, number));
                consumer.assign(assigned);
            }
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            while (received < count) {
                if (System.currentTimeMillis() > deadline) {
                    throw new IllegalStateException("only " + received + " of " + count + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record
                        : (ConsumerRecords<byte[], byte[]>) POLL.invoke(consumer, POLL_TIME)) {
                    out.println(line(record));
                    received++;
                }
            }
            if (isGroup) consumer.commitSync();
        }
        return received;
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) throws Exception {
        List<String> headers = new ArrayList<>();
        if (HEADERS_READ != null) {
            for (Object header : (Iterable<?>) HEADERS_READ.invoke(record)) {
                byte[] name = ((String) NAME.invoke(header)).getBytes(StandardCharsets.UTF_8);
                headers.add(hex(name) + "=" + hex((byte[]) VALUE.invoke(header)));
            }
        }
        return String.join("\t", String.valueOf(record.partition()), String.valueOf(record.offset()),
                String.valueOf(record.timestamp()), hex(record.key()), hex(record.value()), String.join(",", headers));
    }

    private static Class<?> named(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException missing) {
            throw new IllegalStateException(missing);
        }
    }

    /** Null if this release does not have it. */
    private static Method method(Class<?> owner, String name, Class<?>... parameters) {
        try {
            return owner.getMethod(name, parameters);
        } catch (NoSuchMethodException missing) {
            return null;
        }
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
