import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's tools, one after another in one process: starting Java for each costs seconds.
 *
 * A line of standard input is {"class", "arguments", "input" in base64}; a line of standard output is the answer,
 * {"code", "out", "err"}, the latter two in base64. What a tool writes after it asked to exit does not count, and its
 * shutdown hooks run when it has returned.
 */
public class ToolHost {
    static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited() {
            super("exit", null, false, false);
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static ByteArrayOutputStream out;
    private static ByteArrayOutputStream err;
    private static Integer code;
    private static int outLength;
    private static int errLength;

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> exited(status));
        Exit.setHaltProcedure((status, message) -> exited(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            List<String> arguments = new ArrayList<>();
            request.get("arguments").forEach(each -> arguments.add(each.asText()));
            byte[] input = Base64.getDecoder().decode(request.get("input").asText());
            run(request.get("class").asText(), arguments.toArray(new String[0]), input);
            ObjectNode answer = JSON.createObjectNode();
            answer.put("code", code == null ? 0 : code);
            answer.put("out", encoded(out, outLength));
            answer.put("err", encoded(err, errLength));
            answers.println(answer);
            answers.flush();
        }
    }

    private static void exited(int status) {
        if (code == null) {
            code = status;
            System.out.flush();
            System.err.flush();
            outLength = out.size();
            errLength = err.size();
        }
        throw new Exited();
    }

    private static String encoded(ByteArrayOutputStream stream, int length) {
        byte[] all = stream.toByteArray();
        return Base64.getEncoder().encodeToString(code == null ? all : Arrays.copyOf(all, length));
    }

    private static void run(String name, String[] arguments, byte[] input) throws Exception {
        out = new ByteArrayOutputStream();
        err = new ByteArrayOutputStream();
        code = null;
        HOOKS.clear();
        System.setIn(new ByteArrayInputStream(input));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                e.getCause().printStackTrace();
                code = code == null ? Integer.valueOf(1) : code;
                outLength = out.size();
                errLength = err.size();
            }
        }
        for (Runnable hook : HOOKS) {
            hook.run();
        }
    }
}
