import java.io.FileWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.com.google.protobuf.InvalidProtocolBufferException;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;

/**
 * A plug-in of a broker that writes each value that a client pushes as a line: client id, "push" or "last", kind, name,
 * names of the attributes, value.
 */
public class TelemetryReceiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private String file;

    @Override
    public void configure(Map<String, ?> configs) {
        file = (String) configs.get("telemetry.receiver.file");
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        try (FileWriter out = new FileWriter(file, true)) {
            MetricsData data = MetricsData.parseFrom(payload.data());
            String last = payload.isTerminating() ? "last" : "push";
            data.getResourceMetricsList().stream().flatMap(each -> each.getScopeMetricsList().stream())
                .flatMap(each -> each.getMetricsList().stream())
                .forEach(metric -> write(out, context.clientId() + "\t" + last, metric));
        } catch (InvalidProtocolBufferException damaged) {
            throw new IllegalArgumentException(damaged);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static void write(FileWriter out, String start, Metric metric) {
        boolean isSum = metric.hasSum();
        String kind = isSum ? metric.getSum().getAggregationTemporality().name() : "GAUGE";
        List<NumberDataPoint> points = isSum ? metric.getSum().getDataPointsList() : metric.getGauge().getDataPointsList();
        try {
            for (NumberDataPoint point : points) {
                double value = point.hasAsDouble() ? point.getAsDouble() : point.getAsInt();
                String attributes =
                    point.getAttributesList().stream().map(each -> each.getKey()).collect(Collectors.joining(","));
                out.write(String.join("\t", start, kind, metric.getName(), attributes, value + "\n"));
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
    }

    @Override
    public void metricChange(KafkaMetric metric) {
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
    }

    @Override
    public void close() {
    }
}
