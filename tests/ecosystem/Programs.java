import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * A Kafka Streams application with a count by word, a windowed count, and a join of a stream with a table.
 *
 * Each argument is a setting, name=value. A line "query WORD" of standard input prints the host of the word's count and,
 * on that host, the count; the end of the input stops the application.
 */
public class Programs {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(topology(), settings);
        streams.setStateListener((newState, oldState) -> System.out.println("state " + newState));
        streams.start();
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String word = input.nextLine().split(" ")[1];
            System.out.println("answer " + word + " " + answer(streams, word));
        }
        streams.close(Duration.ofSeconds(20));
    }

    private static String answer(KafkaStreams streams, String word) {
        try {
            var found = streams.queryMetadataForKey("counts", word, Serdes.String().serializer());
            var store = streams.store(
                StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.<String, Long>keyValueStore()));
            return found.activeHost().host() + ":" + found.activeHost().port() + " " + store.get(word);
        } catch (RuntimeException error) {
            return "failed " + error.getClass().getSimpleName();
        }
    }

    private static org.apache.kafka.streams.Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> words = builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")));
        words.groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(String::valueOf)
            .to("word-counts");
        words.groupBy((key, word) -> word)
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofDays(1000)))
            .count()
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .mapValues(String::valueOf)
            .to("window-counts");
        KTable<String, String> names = builder.table("names");
        words.selectKey((key, word) -> word)
            .join(names, (word, name) -> word + " is " + name)
            .to("joined", Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }
}
