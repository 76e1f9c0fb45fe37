import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Counts the lines of each key of a topic with Flink, in a cluster within this process. The checkpoints have the counts
 * and the positions, and the transactions of the sink are committed with them.
 *
 * Arguments: bootstrap servers, input topic, output topic, folder of the checkpoints, and the checkpoint to begin with.
 */
public class FlinkCounter {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "200 ms");
        settings.setString("execution.checkpointing.interval", "500 ms");
        settings.setString("execution.checkpointing.tolerable-failed-checkpoints", "1000");
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", "file://" + arguments[3]);
        if (arguments.length > 4) {
            settings.setString("execution.state-recovery.path", "file://" + arguments[4]);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setGroupId("flink")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink")
            .setProperty("transaction.timeout.ms", "600000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(arguments[2])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "source")
            .keyBy(line -> line.split(" ")[0])
            .process(new Count())
            .sinkTo(sink);
        environment.execute("counter");
    }

    /** Writes each line with its number among the lines of its key. */
    private static class Count extends KeyedProcessFunction<String, String, String> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(
                new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(String line, Context context, Collector<String> output)
                throws Exception {
            long number = count.value() == null ? 1 : count.value() + 1;
            count.update(number);
            output.collect(line + " is " + number);
        }
    }
}
