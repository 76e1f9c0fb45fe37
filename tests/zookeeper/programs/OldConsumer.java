import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.KafkaStream;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * A consumer as programs of Kafka 0.8 have it: it knows only ZooKeeper's address, and reads a topic with several streams.
 *
 * <p>Arguments: the topic, the number of streams, and the consumer's properties as NAME=VALUE. Standard output: a line
 * "record PARTITION OFFSET VALUE" for each record, "ready" once the streams exist, and "done COMMAND" after a command.
 * Standard input: "commit", "close", which ends the session, and "halt", which ends the process without it.
 */
public final class OldConsumer {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        for (int index = 2; index < words.length; index++) {
            int equals = words[index].indexOf('=');
            properties.setProperty(words[index].substring(0, equals), words[index].substring(equals + 1));
        }
        ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        Integer count = Integer.valueOf(words[1]);
        for (KafkaStream<byte[], byte[]> stream :
                connector.createMessageStreams(Collections.singletonMap(words[0], count)).get(words[0])) {
            Thread thread = new Thread(() -> print(stream));
            thread.setDaemon(true);
            thread.start();
        }
        say("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            if (command.equals("commit")) {
                connector.commitOffsets(true);
            } else if (command.equals("close")) {
                connector.shutdown();
            } else {
                Runtime.getRuntime().halt(1);
            }
            say("done " + command);
        }
    }

    private static void print(KafkaStream<byte[], byte[]> stream) {
        for (MessageAndMetadata<byte[], byte[]> each : stream) {
            say("record " + each.partition() + " " + each.offset() + " " + new String(each.message()));
        }
    }

    private static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
