// Producers and consumers of Java, driven line by line: a command as JSON on standard input, its result on standard
// output behind "= ". The commands are those of tests/clients/driver.py; bytes are in hex.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, List<String>> heard = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> result = new HashMap<>();
            try {
                JsonNode command = JSON.readTree(line);
                String name = command.get("name").asText();
                String what = command.get("do").asText();
                result.put("result", what.startsWith("producer_")
                        ? driver.producer(what, name, command) : driver.consumer(what, name, command));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                result.put("error", Errors.forException(cause).name());
                result.put("message", cause.toString());
            }
            out.println("= " + JSON.writeValueAsString(result));
        }
    }

    private Object producer(String what, String name, JsonNode command) throws Exception {
        if (what.equals("producer_open")) {
            producers.put(name, new KafkaProducer<>(
                    settings(command), new ByteArraySerializer(), new ByteArraySerializer()));
            return null;
        }
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        switch (what) {
            case "producer_send": return send(producer, command.get("records"));
            case "producer_init": producer.initTransactions(); return null;
            case "producer_begin": producer.beginTransaction(); return null;
            case "producer_commit": producer.commitTransaction(); return null;
            case "producer_abort": producer.abortTransaction(); return null;
            case "producer_offsets":
                producer.sendOffsetsToTransaction(offsets(command.get("offsets")),
                        consumers.get(command.get("consumer").asText()).groupMetadata());
                return null;
            case "producer_close": producers.remove(name).close(); return null;
            default: throw new IllegalArgumentException(what);
        }
    }

    private Object consumer(String what, String name, JsonNode command) {
        if (what.equals("consumer_open")) {
            consumers.put(name, new KafkaConsumer<>(
                    settings(command), new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            heard.put(name, new ArrayList<>());
            return null;
        }
        KafkaConsumer<byte[], byte[]> consumer = consumers.get(name);
        ConsumerRebalanceListener listener = new Listener(heard.get(name));
        switch (what) {
            case "consumer_subscribe": consumer.subscribe(texts(command.get("topics")), listener); return null;
            case "consumer_subscribe_pattern":
                consumer.subscribe(Pattern.compile(command.get("pattern").asText()), listener); return null;
            case "consumer_subscribe_server_pattern":
                consumer.subscribe(new SubscriptionPattern(command.get("pattern").asText()), listener); return null;
            case "consumer_assign": consumer.assign(partitions(command.get("partitions"))); return null;
            case "consumer_poll":
                List<Object> records = new ArrayList<>();
                consumer.poll(Duration.ofMillis(command.get("ms").asLong())).forEach(each -> records.add(record(each)));
                return records;
            case "consumer_heard": return heard.get(name);
            case "consumer_assignment": return named(consumer.assignment());
            case "consumer_commit":
                if (command.get("offsets").isNull()) consumer.commitSync();
                else consumer.commitSync(offsets(command.get("offsets")));
                return null;
            case "consumer_committed":
                Map<String, Object> committed = new TreeMap<>();
                consumer.committed(Map.copyOf(asMap(partitions(command.get("partitions")))).keySet())
                        .forEach((where, each) -> committed.put(where.toString(),
                                each == null ? null : List.of(each.offset(), each.metadata())));
                return committed;
            case "consumer_position": return consumer.position(partitions(command.get("partitions")).get(0));
            case "consumer_seek":
                consumer.seek(partitions(command.get("partitions")).get(0), command.get("offset").asLong());
                return null;
            case "consumer_seek_to_beginning":
                consumer.seekToBeginning(partitions(command.get("partitions"))); return null;
            case "consumer_seek_to_end": consumer.seekToEnd(partitions(command.get("partitions"))); return null;
            case "consumer_pause": consumer.pause(partitions(command.get("partitions"))); return null;
            case "consumer_resume": consumer.resume(partitions(command.get("partitions"))); return null;
            case "consumer_ends": return offsetsOf(consumer.endOffsets(partitions(command.get("partitions"))));
            case "consumer_beginnings":
                return offsetsOf(consumer.beginningOffsets(partitions(command.get("partitions"))));
            case "consumer_times": return times(consumer, command);
            case "consumer_unsubscribe": consumer.unsubscribe(); return null;
            case "consumer_close": consumers.remove(name).close(); return null;
            default: throw new IllegalArgumentException(what);
        }
    }

    private static Object send(KafkaProducer<byte[], byte[]> producer, JsonNode records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode each : records) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(each.get("topic").asText(),
                    each.get("partition").isNull() ? null : Integer.valueOf(each.get("partition").asInt()),
                    each.get("timestamp").isNull() ? null : Long.valueOf(each.get("timestamp").asLong()),
                    bytes(each.get("key")), bytes(each.get("value")));
            for (JsonNode header : each.get("headers")) record.headers().add(header.get(0).asText(), bytes(header.get(1)));
            sent.add(producer.send(record));
        }
        List<Object> written = new ArrayList<>();
        producer.flush();
        for (Future<RecordMetadata> future : sent) written.add(List.of(future.get().partition(), future.get().offset()));
        return written;
    }

    private static Object times(KafkaConsumer<byte[], byte[]> consumer, JsonNode command) {
        Map<TopicPartition, Long> wanted = new HashMap<>();
        for (TopicPartition each : partitions(command.get("partitions"))) {
            wanted.put(each, command.get("timestamp").asLong());
        }
        Map<String, Object> found = new TreeMap<>();
        for (Map.Entry<TopicPartition, OffsetAndTimestamp> each : consumer.offsetsForTimes(wanted).entrySet()) {
            OffsetAndTimestamp at = each.getValue();
            found.put(each.getKey().toString(), at == null ? null : List.of(at.offset(), at.timestamp()));
        }
        return found;
    }

    private static Map<TopicPartition, Boolean> asMap(Collection<TopicPartition> partitions) {
        Map<TopicPartition, Boolean> found = new LinkedHashMap<>();
        partitions.forEach(each -> found.put(each, true));
        return found;
    }

    private static Map<String, Long> offsetsOf(Map<TopicPartition, Long> offsets) {
        Map<String, Long> named = new TreeMap<>();
        offsets.forEach((where, offset) -> named.put(where.toString(), offset));
        return named;
    }

    private static List<String> named(Collection<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        partitions.forEach(each -> names.add(each.toString()));
        names.sort(null);
        return names;
    }

    private static Object record(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("topic", record.topic());
        fields.put("partition", record.partition());
        fields.put("offset", record.offset());
        fields.put("timestamp", record.timestamp());
        fields.put("key", hex(record.key()));
        fields.put("value", hex(record.value()));
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<Object> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(hex(header.value()));
            headers.add(pair);
        }
        fields.put("headers", headers);
        return fields;
    }

    private static Properties settings(JsonNode command) {
        Properties settings = new Properties();
        command.get("config").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        return settings;
    }

    private static List<String> texts(JsonNode array) {
        List<String> found = new ArrayList<>();
        array.forEach(each -> found.add(each.asText()));
        return found;
    }

    private static List<TopicPartition> partitions(JsonNode array) {
        List<TopicPartition> found = new ArrayList<>();
        array.forEach(each -> found.add(partition(each.asText())));
        return found;
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode object) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        object.fields().forEachRemaining(
                each -> found.put(partition(each.getKey()), new OffsetAndMetadata(each.getValue().asLong())));
        return found;
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HexFormat.of().parseHex(hex.asText());
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? null : HexFormat.of().formatHex(bytes);
    }

    private static final class Listener implements ConsumerRebalanceListener {
        private final List<String> heard;

        Listener(List<String> heard) { this.heard = heard; }

        @Override public void onPartitionsRevoked(Collection<TopicPartition> gone) {
            for (String each : named(gone)) heard.add("- " + each);
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> come) {
            for (String each : named(come)) heard.add("+ " + each);
        }

        @Override public void onPartitionsLost(Collection<TopicPartition> lost) {
            for (String each : named(lost)) heard.add("! " + each);
        }
    }
}
