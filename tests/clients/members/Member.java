// A member of a group with kafka-clients from 0.10.1 to 4.x: see member.py.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[1]);
        if (args[3].startsWith("consumer:")) { // the protocol of KIP-848: the broker sets the times
            settings.put("group.protocol", "consumer");
            settings.put("group.remote.assignor", args[3].substring("consumer:".length()));
        } else {
            settings.put("partition.assignment.strategy", args[3]);
            settings.put("session.timeout.ms", args[5]);
            settings.put("heartbeat.interval.ms", "300");
        }
        if (!args[4].equals("-")) settings.put("group.instance.id", args[4]);
        settings.put("max.poll.interval.ms", args[6]);
        settings.put("auto.offset.reset", "earliest");
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
        ConcurrentLinkedQueue<String> commands = commands();
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(Collections.singletonList(args[2]));
        String known = "";
        while (true) {
            String command = commands.poll();
            if (command != null && command.equals("stop")) break;
            if (command != null) Thread.sleep(Long.parseLong(command.split(" ")[1]));
            ConsumerRecords<byte[], byte[]> records = (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, pollTime);
            String assigned = assignment(consumer);
            if (!assigned.equals(known)) System.out.println("assigned\t" + assigned);
            known = assigned;
            if (records.isEmpty()) continue;
            try {
                consumer.commitSync();
            } catch (CommitFailedException error) {
                continue; // another member has the partitions now, and reads them again
            }
            for (ConsumerRecord<byte[], byte[]> record : records) {
                System.out.println("record\t" + record.partition() + "\t" + record.offset());
            }
        }
        consumer.close();
    }

    private static String assignment(KafkaConsumer<byte[], byte[]> consumer) {
        TreeSet<Integer> numbers = new TreeSet<>();
        for (TopicPartition partition : consumer.assignment()) numbers.add(partition.partition());
        return numbers.toString().replaceAll("[\\[\\] ]", "");
    }

    private static ConcurrentLinkedQueue<String> commands() {
        ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
        Thread reader = new Thread(() -> {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            try {
                for (String line = in.readLine(); line != null; line = in.readLine()) commands.add(line);
            } catch (java.io.IOException error) {
                throw new IllegalStateException(error);
            }
        });
        reader.setDaemon(true);
        reader.start();
        return commands;
    }
}
