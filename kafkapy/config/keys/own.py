"""Configuration keys: additions of kafkapy."""

from kafkapy.config.row import BOOLEAN, INT, LIST, LOW, PASSWORD, READ_ONLY, SHORT, STRING, key
from kafkapy.config.validator import ADDRESS, ANY, ZNODE_PATH, at_least, one_of

ROWS = (
    key(
        "kafkapy.audit.client.config", STRING, "", ANY, LOW, READ_ONLY,
        "File with the configuration of the client by which the broker writes the counts of kafkapy.audit.topics. A broker "
        "without a listener of the security protocol PLAINTEXT needs it.",
    ),
    key(
        "kafkapy.audit.topics", LIST, "", ANY, LOW, READ_ONLY,
        "Topics whose records the broker counts by client and time, for kafkapy audit; names may have the wildcards * and ?. "
        "Internal topics and the topic of the counts are never counted. Without a value nothing is counted.",
    ),
    key(
        "kafkapy.console.arguments", STRING, "", ANY, LOW, READ_ONLY,
        "Further arguments of the console that kafkapy.console.listener starts, as in --users FILE --allow-changes. A "
        "broker without a listener of the security protocol PLAINTEXT needs --command-config FILE here.",
    ),
    key(
        "kafkapy.console.listener", STRING, "", ADDRESS, LOW, READ_ONLY,
        "Address of the console, a web application that the broker runs as a child process: host:port, or a port on "
        "loopback, as in localhost:9080. Without a value there is no console. An address outside of the loopback interface "
        "needs a login in kafkapy.console.arguments.",
    ),
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
    key(
        "zookeeper.listener", STRING, "", ADDRESS, LOW, READ_ONLY,
        "Address of a listener for ZooKeeper's clients: host:port, or a port on loopback, as in localhost:2181. It serves a "
        "tree of znodes, which is stored in the topic __zookeeper_tree. Without a value there is no listener. Everybody who "
        "can connect to it can read and change the nodes whose ACL does not forbid it.",
    ),
    key(
        "zookeeper.listener.max.connections.per.address", INT, 60, at_least(0), LOW, READ_ONLY,
        "Largest number of connections of one client address to zookeeper.listener; 0 for any number.",
    ),
    key(
        "zookeeper.listener.max.request.bytes", INT, 1048575, at_least(1024), LOW, READ_ONLY,
        "Largest request to zookeeper.listener, and with it the largest data of a znode. A larger request closes the "
        "connection.",
    ),
    key(
        "zookeeper.listener.max.session.timeout.ms", INT, 40000, at_least(1), LOW, READ_ONLY,
        "Longest session timeout that a client of zookeeper.listener gets.",
    ),
    key(
        "zookeeper.listener.min.session.timeout.ms", INT, 4000, at_least(1), LOW, READ_ONLY,
        "Shortest session timeout that a client of zookeeper.listener gets.",
    ),
    key(
        "zookeeper.listener.sasl.required", BOOLEAN, True, ANY, LOW, READ_ONLY,
        "Whether clients of zookeeper.listener must authenticate if its security protocol has SASL. Otherwise clients "
        "without a user name are served too, as by ZooKeeper.",
    ),
    key(
        "zookeeper.listener.security.protocol", STRING, "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), LOW,
        READ_ONLY,
        "Security protocol of zookeeper.listener. With TLS it has the ssl keys; keys with the prefix "
        "listener.name.zookeeper. are for this listener only. With SASL, clients authenticate by DIGEST-MD5.",
    ),
    key(
        "zookeeper.listener.view.chroot", STRING, "/", ZNODE_PATH, LOW, READ_ONLY,
        "Path of the znode below which the listener shows the cluster as Kafka's znodes (/brokers, /config and others). "
        "Programs may use all other paths as they like.",
    ),
    key(
        "zookeeper.listener.view.writes.enable", BOOLEAN, True, ANY, LOW, READ_ONLY,
        "Whether clients of zookeeper.listener may create, change and delete topics, configurations and quotas by writing "
        "Kafka's znodes. These requests are made in the name of the broker. With an authorizer they are refused, unless this "
        "key is set to true.",
    ),
    key(
        "zookeeper.mirror.connect", STRING, "", ANY, LOW, READ_ONLY,
        "Address of a ZooKeeper, as host:port[,host:port ...][/chroot], in which the broker with the lowest id shows the cluster "
        "as Kafka's znodes. Programs read them there; what they write has no effect. It needs the extra kafkapy[zookeeper]. "
        "Without a value nothing is written.",
    ),
    key(
        "zookeeper.tree.topic.min.isr", SHORT, 1, at_least(1), LOW, READ_ONLY,
        "min.insync.replicas of the topic __zookeeper_tree.",
    ),
    key(
        "zookeeper.tree.topic.replication.factor", SHORT, 3, at_least(1), LOW, READ_ONLY,
        "Number of replicas of the topic __zookeeper_tree. It is not created while the cluster has fewer brokers.",
    ),
)
