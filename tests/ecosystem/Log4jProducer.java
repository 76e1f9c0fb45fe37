import org.apache.log4j.Logger;

/** Logs a line of each of two levels: the documents' program for the appender that writes to Kafka. */
public class Log4jProducer {
    private static final Logger LOG = Logger.getLogger(Log4jProducer.class);

    public static void main(String[] arguments) throws Exception {
        LOG.info("这是一条 info 级别的日志!!");
        LOG.error("这是一条 error 级别的日志!!");
        System.out.println("logged");
        // The broker is killed and started again here.
        System.in.read();
        for (int number = 0; number < 100; number++) {
            LOG.error("line " + number);
        }
    }
}
