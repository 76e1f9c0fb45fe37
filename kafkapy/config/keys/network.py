"""Configuration keys: listeners, sockets and connection limits."""

from kafkapy.config.row import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    REQUIRED,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, at_least, filled_list_of, list_of, one_of

ROWS = (
    key(
        "listeners", LIST, "PLAINTEXT://:9092", filled_list_of(), HIGH, PER_BROKER,
        "Addresses to listen on, NAME://host:port; an empty host is every interface.",
    ),
    key(
        "advertised.listeners", LIST, None, filled_list_of(), HIGH, READ_ONLY,
        "Addresses that clients connect to, if they differ from listeners.",
    ),
    key(
        "listener.security.protocol.map", STRING, "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", ANY, LOW, PER_BROKER,
        "Security protocol of each listener name.",
    ),
    key("inter.broker.listener.name", STRING, None, ANY, MEDIUM, READ_ONLY, "Listener for traffic between brokers."),
    key(
        "security.inter.broker.protocol", STRING, "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), MEDIUM, READ_ONLY,
        "Security protocol between brokers, if inter.broker.listener.name is not set.",
    ),
    key(
        "controller.listener.names", LIST, REQUIRED, filled_list_of(), HIGH, READ_ONLY,
        "Listeners of the controller; they are never advertised to clients.",
    ),
    key(
        "early.start.listeners", LIST, None, list_of(), HIGH, READ_ONLY,
        "Listeners that open before the authorizer is ready; by default those of the controller.",
    ),
    key(
        "socket.listen.backlog.size", INT, 50, at_least(1), MEDIUM, READ_ONLY,
        "Connections that may wait to be accepted.",
    ),
    key(
        "socket.send.buffer.bytes", INT, 102400, ANY, HIGH, READ_ONLY,
        "SO_SNDBUF of client sockets; -1 leaves the system's choice.",
    ),
    key(
        "socket.receive.buffer.bytes", INT, 102400, ANY, HIGH, READ_ONLY,
        "SO_RCVBUF of client sockets; -1 leaves the system's choice.",
    ),
    key(
        "socket.request.max.bytes", INT, 104857600, at_least(1), HIGH, READ_ONLY,
        "Largest request accepted; a longer one closes the connection.",
    ),
    inert(
        "num.network.threads", INT, 3, at_least(1), HIGH, CLUSTER_WIDE,
        "Network threads of a listener; kafkapy has one reactor thread.",
    ),
    key("max.connections", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE, "Largest number of connections at a time on this broker."),
    key(
        "max.connections.per.ip", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Largest number of connections at a time from one address.",
    ),
    key(
        "max.connections.per.ip.overrides", STRING, "", ANY, MEDIUM, CLUSTER_WIDE,
        "Limits for single addresses or names, host:limit, separated by commas.",
    ),
    key(
        "max.connection.creation.rate", INT, INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Largest number of connections accepted per second.",
    ),
    key(
        "connections.max.idle.ms", LONG, 600000, ANY, MEDIUM, READ_ONLY,
        "Close a connection that has been idle for this long.",
    ),
    key(
        "connection.failed.authentication.delay.ms", INT, 100, at_least(0), LOW, READ_ONLY,
        "Delay before the response to a failed authentication.",
    ),
    key(
        "connections.max.reauth.ms", LONG, 0, ANY, MEDIUM, READ_ONLY,
        "Session time after which SASL clients must authenticate again; 0 means never.",
    ),
)
