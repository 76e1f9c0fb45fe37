"""Configuration keys of all clients: connections, metadata, retries."""

from kafkapy.config.row import (
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    client_key,
    inert_client_key,
)
from kafkapy.config.validator import ANY, at_least, one_of, one_of_ignoring_case

ROWS = (
    inert_client_key(
        "client.dns.lookup", STRING, "use_all_dns_ips", one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), MEDIUM,
        "Use of DNS: try all addresses of a name, or resolve its canonical name.",
    ),
    inert_client_key(
        "config.providers", LIST, "", ANY, LOW,
        "Java classes that resolve variables in values.",
    ),
    client_key(
        "metadata.max.age.ms", LONG, 300000, at_least(0), LOW,
        "Age at which metadata is requested again.",
    ),
    client_key(
        "metadata.recovery.rebootstrap.trigger.ms", LONG, 300000, at_least(0), LOW,
        "Time without metadata after which the client connects to bootstrap.servers again.",
    ),
    client_key(
        "metadata.recovery.strategy", STRING, "rebootstrap", one_of_ignoring_case("REBOOTSTRAP", "NONE"), LOW,
        "Recovery when no known broker can be reached: connect to bootstrap.servers again, or none.",
    ),
    inert_client_key(
        "metric.reporters", LIST, "org.apache.kafka.common.metrics.JmxReporter", ANY, LOW,
        "Java classes that report metrics.",
    ),
    client_key(
        "metrics.num.samples", INT, 2, at_least(1), LOW,
        "Samples from which a metric is computed.",
    ),
    inert_client_key(
        "metrics.recording.level", STRING, "INFO", one_of("INFO", "DEBUG", "TRACE"), LOW,
        "The most detailed metrics that are kept.",
    ),
    client_key(
        "metrics.sample.window.ms", LONG, 30000, at_least(0), LOW,
        "Time that a sample of a metric covers.",
    ),
    client_key(
        "reconnect.backoff.max.ms", LONG, 1000, at_least(0), LOW,
        "Longest pause before the client connects to a broker again.",
    ),
    client_key(
        "reconnect.backoff.ms", LONG, 50, at_least(0), LOW,
        "First pause before the client connects to a broker again; it doubles each time.",
    ),
    client_key(
        "request.timeout.ms", INT, 30000, at_least(0), MEDIUM,
        "Longest time that a request waits for its response.",
    ),
    client_key(
        "retry.backoff.max.ms", LONG, 1000, at_least(0), LOW,
        "Longest pause before a request is sent again.",
    ),
    client_key(
        "retry.backoff.ms", LONG, 100, at_least(0), LOW,
        "First pause before a request is sent again; it doubles each time.",
    ),
    client_key(
        "send.buffer.bytes", INT, 131072, at_least(-1), MEDIUM,
        "Size of the socket's send buffer; -1 means the system's default.",
    ),
    client_key(
        "socket.connection.setup.timeout.max.ms", LONG, 30000, ANY, MEDIUM,
        "Longest time-out of connecting to a broker.",
    ),
    client_key(
        "socket.connection.setup.timeout.ms", LONG, 10000, ANY, MEDIUM,
        "First time-out of connecting to a broker; it doubles each time.",
    ),
)
