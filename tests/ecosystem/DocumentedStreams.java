import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The examples of a published chapter on Kafka Streams, with today's API, in one application.
 *
 * Each argument is a setting, name=value. A result is a line that begins with the name of its example. The end of
 * standard input stops the application.
 */
public class DocumentedStreams {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Integer> NUMBER = Serdes.Integer();
    private static final TimeWindows MINUTE = TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1));

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(topology(), settings);
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close(Duration.ofSeconds(30));
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        // A stream prints every record. A table prints the last value of a key when its cache is written.
        KStream<String, String> cities = builder.stream("streams-foo");
        cities.print(Printed.toSysOut());
        show("table", cities.toTable(Materialized.as("KTable-test")));
        countWords(builder);
        findGreatest(builder);
        findAddresses(builder);
        join(builder);
        return builder.build();
    }

    private static void countWords(StreamsBuilder builder) {
        show("count", builder.<String, String>stream("words")
            .filter((key, line) -> line != null && !line.isBlank())
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(",")))
            .map((key, word) -> new KeyValue<>(word, word))
            .groupByKey()
            .count(Materialized.<String, Long>as(store("word-count")).withCachingDisabled()));
    }

    private static void findGreatest(StreamsBuilder builder) {
        var numbers = builder.<String, String>stream("numbers")
            .mapValues(text -> Integer.parseInt(text))
            .groupByKey(Grouped.with(TEXT, NUMBER));
        show("max", numbers.aggregate(() -> Integer.MIN_VALUE, (key, value, greatest) -> Math.max(value, greatest),
            Materialized.<String, Integer>as(store("max")).withValueSerde(NUMBER).withCachingDisabled()));
        numbers.windowedBy(MINUTE)
            .aggregate(() -> Integer.MIN_VALUE, (key, value, greatest) -> Math.max(value, greatest),
                Materialized.with(TEXT, NUMBER))
            .toStream((window, greatest) -> window.key() + "@" + window.window().start())
            .foreach((key, greatest) -> System.out.println("max2 " + key + " " + greatest));
        // The subtractor is the maximum too, so that the result never decreases.
        show("table-max", builder.table("ktable-aggregate", Consumed.with(TEXT, NUMBER),
                Materialized.<String, Integer>as(store("ktable-aggregate-store")).withCachingDisabled())
            .groupBy((key, value) -> new KeyValue<>(key, value), Grouped.with(TEXT, NUMBER))
            .aggregate(() -> Integer.MIN_VALUE, (key, value, greatest) -> Math.max(value, greatest),
                (key, value, greatest) -> Math.max(value, greatest),
                Materialized.<String, Integer>as(store("ktable-max")).withValueSerde(NUMBER).withCachingDisabled()));
    }

    /** An address with two requests in a minute is on the list; the documents use 60 outside of their test. */
    private static void findAddresses(StreamsBuilder builder) {
        builder.<String, String>stream("access-log")
            .map((key, address) -> new KeyValue<>(address, address))
            .groupByKey()
            .windowedBy(MINUTE)
            .count(Materialized.<String, Long>as(Stores.persistentWindowStore(
                "access-count", Duration.ofDays(1), Duration.ofMinutes(1), false)).withCachingDisabled())
            .toStream()
            .filter((window, count) -> count != null && count >= 2)
            .foreach((window, count) -> System.out.println(
                "blacklist ip:" + window.key() + "被加入到黑名单,请求次数为:" + count));
    }

    private static void join(StreamsBuilder builder) {
        KStream<String, String> left = builder.stream("left-source");
        KStream<String, String> right = builder.stream("right-source");
        left.join(right, DocumentedStreams::joined, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(5)),
                StreamJoined.with(TEXT, TEXT, TEXT))
            .foreach((key, value) -> System.out.println("streams " + key + " " + value));
        KTable<String, String> leftTable = left.toTable(uncached("ktable-join-left"));
        KTable<String, String> rightTable = right.toTable(uncached("ktable-join-right"));
        show("tables", leftTable.join(rightTable, DocumentedStreams::joined));
        left.leftJoin(rightTable, DocumentedStreams::joined)
            .foreach((key, value) -> System.out.println("stream-table " + key + " " + value));
    }

    private static String joined(String left, String right) {
        return "left:" + left + ", right:" + right;
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> uncached(String name) {
        return Materialized.<String, String>as(store(name)).withCachingDisabled();
    }

    private static KeyValueBytesStoreSupplier store(String name) {
        return Stores.persistentKeyValueStore(name);
    }

    private static <V> void show(String name, KTable<String, V> table) {
        table.toStream().foreach((key, value) -> System.out.println(name + " " + key + " " + value));
    }
}
