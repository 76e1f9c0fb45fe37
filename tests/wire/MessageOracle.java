import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Apache Kafka's own message classes as the judge of ours. Each line of the file is a JSON object: class, version, hex
 * (the message as we wrote it) and, if it can be said in JSON, json (what we meant). Prints a line per disagreement and,
 * last, how many were checked.
 */
public class MessageOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        int checked = 0;
        try (BufferedReader reader = new BufferedReader(new FileReader(arguments[0]))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine(), checked++) {
                JsonNode row = mapper.readTree(line);
                String verdict = judge(row);
                if (verdict != null) {
                    System.out.println(row.get("class").asText() + " v" + row.get("version") + ": " + verdict + ": " + line);
                }
            }
        }
        System.out.println("checked " + checked);
    }

    /** Null if Kafka reads our bytes as what we meant and writes the same bytes. */
    static String judge(JsonNode row) throws Exception {
        short version = (short) row.get("version").asInt();
        byte[] ours = HexFormat.of().parseHex(row.get("hex").asText());
        Class<?> messageClass = Class.forName(row.get("class").asText());
        Message message = (Message) messageClass.getDeclaredConstructor().newInstance();
        ByteBufferAccessor input = new ByteBufferAccessor(ByteBuffer.wrap(ours));
        try {
            message.read(input, version);
        } catch (RuntimeException error) {
            return "cannot be read, " + error;
        }
        if (input.remaining() != 0) {
            return input.remaining() + " bytes are left over";
        }
        if (!Arrays.equals(ours, written(message, version))) {
            return "Kafka writes " + HexFormat.of().formatHex(written(message, version));
        }
        if (row.has("json")) {
            Class<?> converter = Class.forName(messageClass.getName() + "JsonConverter");
            Object meant = converter.getMethod("read", JsonNode.class, short.class).invoke(null, row.get("json"), version);
            if (!meant.equals(message)) {
                return "Kafka reads " + message;
            }
        }
        return null;
    }

    static byte[] written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer output = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(output), cache, version);
        return output.array();
    }
}
