"""Configuration keys: additions of kafkapy."""

from kafkapy.config.row import BOOLEAN, INT, LOW, PASSWORD, READ_ONLY, STRING, key
from kafkapy.config.validator import ADDRESS, ANY, at_least

ROWS = (
    key(
        "kafkapy.fence.dead.brokers.enable", BOOLEAN, True, ANY, LOW, READ_ONLY,
        "Whether the controller fences a broker at once when its heartbeat connection has ended and all its listeners "
        "refuse connections. Switch it off if a firewall refuses the controller's connections.",
    ),
    key(
        "kafkapy.jaas.config.file", STRING, "", ANY, LOW, READ_ONLY,
        "JAAS file with the login contexts of listeners whose sasl.jaas.config is not set. Without a value, the file is "
        "the one that the environment variable KAFKA_OPTS names by -Djava.security.auth.login.config.",
    ),
    key(
        "kafkapy.log.directory", STRING, "", ANY, LOW, READ_ONLY,
        "Directory for log files of the controller, of state changes, of the log cleaner, of the authorizer and of "
        "requests, with Apache Kafka's names. Without a value, all messages are in one log.",
    ),
    key(
        "kafkapy.metrics.listener", STRING, "", ADDRESS, LOW, READ_ONLY,
        "Address of the HTTP listener for Prometheus (/metrics) and health (/live, /ready): host:port, or a port on "
        "loopback, as in localhost:9404. Without a value there is no listener. Without kafkapy.metrics.username, everybody "
        "who can connect to it can read the metrics.",
    ),
    key(
        "kafkapy.metrics.password", PASSWORD, None, ANY, LOW, READ_ONLY,
        "Password of kafkapy.metrics.username.",
    ),
    key(
        "kafkapy.sasl.oauthbearer.unsecured.tokens.enable", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Whether OAUTHBEARER accepts tokens without a signature where no keys are configured, as Kafka does by default. "
        "Anybody can make such a token: for tests only.",
    ),
    key(
        "kafkapy.metrics.series.limit", INT, 2000, at_least(1), LOW, READ_ONLY,
        "Largest number of topics, partitions, groups, committed offsets and values of clients, each, with series of their "
        "own on the metrics page; the others are summed under \"(other)\".",
    ),
    key(
        "kafkapy.metrics.tls.enable", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Whether the metrics listener uses TLS, with the ssl keys; keys with the prefix listener.name.metrics. are for this "
        "listener only.",
    ),
    key(
        "kafkapy.metrics.username", STRING, "", ANY, LOW, READ_ONLY,
        "User name that a reader of the metrics must give (HTTP basic authentication) with kafkapy.metrics.password. The "
        "health pages need none.",
    ),
    key(
        "kafkapy.ssl.crl.location", STRING, "", ANY, LOW, READ_ONLY,
        "File with certificate revocation lists in PEM. Clients whose certificate is revoked, or whose issuer has no list in "
        "the file, are refused. It may have the prefix of a listener.",
    ),
)
