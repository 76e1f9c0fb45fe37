"""The configuration keys of librdkafka 2.16, which confluent-kafka accepts, and their treatment in kafkapy.

A key is translated to one of kafkapy's keys, is handled by the classes of this package, is accepted without an effect
because it tunes librdkafka's own internals (`ACCEPTED`), or cannot be honoured (`REFUSED`). If a key cannot be
honoured, a value other than its default raises an error.
"""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple


class Alias(NamedTuple):
    """A second name of a configuration key; `of` is the main name of the key."""

    of: str


class Number(NamedTuple):
    """An integer key, whose values are from `lowest` to `highest`.

    `roles` is "P" for producers, "C" for consumers and "*" for all clients.
    """

    roles: str
    lowest: int
    highest: int
    default: int


class Switch(NamedTuple):
    """A key that is true or false. `roles` is "P" for producers, "C" for consumers and "*" for all clients."""

    roles: str
    default: bool


class Choice(NamedTuple):
    """A key with a few accepted `values`. `roles` is "P" for producers, "C" for consumers and "*" for all clients."""

    roles: str
    values: tuple[str, ...]
    default: str


class Text(NamedTuple):
    """A key whose value is any text; `default` is None if the key has no default value.

    `roles` is "P" for producers, "C" for consumers and "*" for all clients.
    """

    roles: str
    default: str | None


class Callback(NamedTuple):
    """A key whose value is a function of librdkafka's C interface. A program in Python cannot set this key.

    `roles` is "P" for producers, "C" for consumers and "*" for all clients.
    """

    roles: str


Key = Alias | Number | Switch | Choice | Text | Callback

KEYS: dict[str, Key] = {
    "acks": Alias("request.required.acks"),
    "allow.auto.create.topics": Switch("*", False),
    "api.version.fallback.ms": Number("*", 0, 604800000, 0),
    "api.version.request": Switch("*", True),
    "api.version.request.timeout.ms": Number("*", 1, 300000, 10000),
    "auto.commit.enable": Switch("C", True),
    "auto.commit.interval.ms": Number("C", 0, 86400000, 5000),
    "auto.offset.reset": Choice(
        "C", ("smallest", "earliest", "beginning", "largest", "latest", "end", "error"), "largest"
    ),
    "background_event_cb": Callback("*"),
    "batch.num.messages": Number("P", 1, 1000000, 10000),
    "batch.size": Number("P", 1, 2147483647, 1000000),
    "bootstrap.servers": Alias("metadata.broker.list"),
    "broker.address.family": Choice("*", ("any", "v4", "v6"), "any"),
    "broker.address.ttl": Number("*", 0, 86400000, 1000),
    "broker.version.fallback": Text("*", "0.10.0"),
    "builtin.features": Text("*", None),
    "check.crcs": Switch("C", False),
    "client.dns.lookup": Choice(
        "*", ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), "use_all_dns_ips"
    ),
    "client.id": Text("*", "rdkafka"),
    "client.rack": Text("*", None),
    "closesocket_cb": Callback("*"),
    "compression.codec": Choice("P", ("none", "gzip", "snappy", "lz4", "zstd"), "none"),
    "compression.level": Number("P", -1, 12, -1),
    "compression.type": Alias("compression.codec"),
    "connect_cb": Callback("*"),
    "connections.max.idle.ms": Number("*", 0, 2147483647, 0),
    "consume.callback.max.messages": Number("C", 0, 1000000, 0),
    "consume_cb": Callback("C"),
    "coordinator.query.interval.ms": Number("C", 1, 3600000, 600000),
    "debug": Text("*", None),
    "default_topic_conf": Callback("*"),
    "delivery.report.only.error": Switch("P", False),
    "delivery.timeout.ms": Alias("message.timeout.ms"),
    "dr_cb": Callback("P"),
    "dr_msg_cb": Callback("P"),
    "enable.auto.commit": Switch("C", True),
    "enable.auto.offset.store": Switch("C", True),
    "enable.gapless.guarantee": Switch("P", False),
    "enable.idempotence": Switch("P", False),
    "enable.metrics.push": Switch("*", True),
    "enable.partition.eof": Switch("C", False),
    "enable.random.seed": Switch("*", True),
    "enable.sasl.oauthbearer.unsecure.jwt": Switch("*", False),
    "enable.ssl.certificate.verification": Switch("*", True),
    "enabled_events": Number("*", 0, 2147483647, 0),
    "error_cb": Callback("*"),
    "fetch.error.backoff.ms": Number("C", 0, 300000, 500),
    "fetch.max.bytes": Number("C", 0, 2147483135, 52428800),
    "fetch.message.max.bytes": Number("C", 1, 1000000000, 1048576),
    "fetch.min.bytes": Number("C", 0, 2147483647, 1),
    "fetch.queue.backoff.ms": Number("C", 0, 300000, 1000),
    "fetch.wait.max.ms": Number("C", 0, 300000, 500),
    "group.id": Text("C", None),
    "group.instance.id": Text("C", None),
    "group.protocol": Choice("C", ("classic", "consumer"), "classic"),
    "group.protocol.type": Text("C", "consumer"),
    "group.remote.assignor": Text("C", None),
    "heartbeat.interval.ms": Number("C", 1, 3600000, 3000),
    "https.ca.location": Text("*", None),
    "https.ca.pem": Text("*", None),
    "interceptors": Callback("*"),
    "internal.termination.signal": Number("*", 0, 128, 0),
    "isolation.level": Choice("C", ("read_uncommitted", "read_committed"), "read_committed"),
    "linger.ms": Alias("queue.buffering.max.ms"),
    "log.connection.close": Switch("*", True),
    "log.queue": Switch("*", False),
    "log.thread.name": Switch("*", True),
    "log_cb": Callback("*"),
    "log_level": Number("*", 0, 7, 6),
    "max.in.flight": Alias("max.in.flight.requests.per.connection"),
    "max.in.flight.requests.per.connection": Number("*", 1, 1000000, 1000000),
    "max.partition.fetch.bytes": Alias("fetch.message.max.bytes"),
    "max.poll.interval.ms": Number("C", 1, 86400000, 300000),
    "max.poll.records": Number("C", 1, 2147483647, 500),
    "message.copy.max.bytes": Number("*", 0, 1000000000, 65535),
    "message.max.bytes": Number("*", 1000, 1000000000, 1000000),
    "message.send.max.retries": Number("P", 0, 2147483647, 2147483647),
    "message.timeout.ms": Number("P", 0, 2147483647, 300000),
    "metadata.broker.list": Text("*", None),
    "metadata.max.age.ms": Number("*", 1, 86400000, 900000),
    "metadata.recovery.rebootstrap.trigger.ms": Number("*", 0, 2147483647, 300000),
    "metadata.recovery.strategy": Choice("*", ("none", "rebootstrap"), "rebootstrap"),
    "msg_order_cmp": Callback("P"),
    "oauthbearer_token_refresh_cb": Callback("*"),
    "offset.store.method": Choice("C", ("none", "file", "broker"), "broker"),
    "offset.store.path": Text("C", "."),
    "offset.store.sync.interval.ms": Number("C", -1, 86400000, -1),
    "offset_commit_cb": Callback("C"),
    "opaque": Callback("*"),
    "open_cb": Callback("*"),
    "partition.assignment.strategy": Text("C", "range,roundrobin"),
    "partitioner": Text("P", "consistent_random"),
    "partitioner_cb": Callback("P"),
    "plugin.library.paths": Text("*", None),
    "produce.offset.report": Switch("P", False),
    "queue.buffering.backpressure.threshold": Number("P", 1, 1000000, 1),
    "queue.buffering.max.kbytes": Number("P", 1, 2147483647, 1048576),
    "queue.buffering.max.messages": Number("P", 0, 2147483647, 100000),
    "queue.buffering.max.ms": Text("P", "5"),
    "queued.max.messages.kbytes": Number("C", 1, 2097151, 65536),
    "queued.min.messages": Number("C", 1, 10000000, 100000),
    "queuing.strategy": Choice("P", ("fifo", "lifo"), "fifo"),
    "rebalance_cb": Callback("C"),
    "receive.message.max.bytes": Number("*", 1000, 2147483647, 100000000),
    "reconnect.backoff.jitter.ms": Number("*", 0, 3600000, 0),
    "reconnect.backoff.max.ms": Number("*", 0, 3600000, 10000),
    "reconnect.backoff.ms": Number("*", 0, 3600000, 100),
    "request.required.acks": Number("P", -1, 1000, -1),
    "request.timeout.ms": Number("P", 1, 900000, 30000),
    "resolve_cb": Callback("*"),
    "retries": Alias("message.send.max.retries"),
    "retry.backoff.max.ms": Number("*", 1, 300000, 1000),
    "retry.backoff.ms": Number("*", 1, 300000, 100),
    "sasl.kerberos.keytab": Text("*", None),
    "sasl.kerberos.kinit.cmd": Text("*", None),
    "sasl.kerberos.min.time.before.relogin": Number("*", 0, 86400000, 60000),
    "sasl.kerberos.principal": Text("*", "kafkaclient"),
    "sasl.kerberos.service.name": Text("*", "kafka"),
    "sasl.mechanism": Alias("sasl.mechanisms"),
    "sasl.mechanisms": Text("*", "GSSAPI"),
    "sasl.oauthbearer.assertion.algorithm": Choice("*", ("RS256", "ES256"), "RS256"),
    "sasl.oauthbearer.assertion.claim.aud": Text("*", None),
    "sasl.oauthbearer.assertion.claim.exp.seconds": Number("*", 1, 2147483647, 300),
    "sasl.oauthbearer.assertion.claim.iss": Text("*", None),
    "sasl.oauthbearer.assertion.claim.jti.include": Switch("*", False),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Number("*", 0, 2147483647, 60),
    "sasl.oauthbearer.assertion.claim.sub": Text("*", None),
    "sasl.oauthbearer.assertion.file": Text("*", None),
    "sasl.oauthbearer.assertion.jwt.template.file": Text("*", None),
    "sasl.oauthbearer.assertion.private.key.file": Text("*", None),
    "sasl.oauthbearer.assertion.private.key.passphrase": Text("*", None),
    "sasl.oauthbearer.assertion.private.key.pem": Text("*", None),
    "sasl.oauthbearer.client.credentials.client.id": Alias("sasl.oauthbearer.client.id"),
    "sasl.oauthbearer.client.credentials.client.secret": Alias("sasl.oauthbearer.client.secret"),
    "sasl.oauthbearer.client.id": Text("*", None),
    "sasl.oauthbearer.client.secret": Text("*", None),
    "sasl.oauthbearer.config": Text("*", None),
    "sasl.oauthbearer.extensions": Text("*", None),
    "sasl.oauthbearer.grant.type": Choice(
        "*", ("client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"), "client_credentials"
    ),
    "sasl.oauthbearer.metadata.authentication.type": Choice("*", ("none", "azure_imds", "aws_iam"), "none"),
    "sasl.oauthbearer.method": Choice("*", ("default", "oidc"), "default"),
    "sasl.oauthbearer.scope": Text("*", None),
    "sasl.oauthbearer.sub.claim.name": Text("*", "sub"),
    "sasl.oauthbearer.token.endpoint.url": Text("*", None),
    "sasl.password": Text("*", None),
    "sasl.username": Text("*", None),
    "security.protocol": Choice("*", ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "plaintext"),
    "session.timeout.ms": Number("C", 1, 3600000, 45000),
    "share.acknowledgement.mode": Text("C", "implicit"),
    "socket.blocking.max.ms": Number("*", 1, 60000, 1000),
    "socket.connection.setup.timeout.ms": Number("*", 1000, 2147483647, 30000),
    "socket.keepalive.enable": Switch("*", False),
    "socket.max.fails": Number("*", 0, 1000000, 1),
    "socket.nagle.disable": Switch("*", True),
    "socket.receive.buffer.bytes": Number("*", 0, 100000000, 0),
    "socket.send.buffer.bytes": Number("*", 0, 100000000, 0),
    "socket.timeout.ms": Number("*", 10, 300000, 60000),
    "socket_cb": Callback("*"),
    "ssl.ca.certificate.stores": Text("*", "Root"),
    "ssl.ca.location": Text("*", None),
    "ssl.ca.pem": Text("*", None),
    "ssl.certificate.location": Text("*", None),
    "ssl.certificate.pem": Text("*", None),
    "ssl.certificate.verify_cb": Callback("*"),
    "ssl.cipher.suites": Text("*", None),
    "ssl.crl.location": Text("*", None),
    "ssl.curves.list": Text("*", None),
    "ssl.endpoint.identification.algorithm": Choice("*", ("none", "https"), "https"),
    "ssl.engine.id": Text("*", "dynamic"),
    "ssl.engine.location": Text("*", None),
    "ssl.key.location": Text("*", None),
    "ssl.key.password": Text("*", None),
    "ssl.key.pem": Text("*", None),
    "ssl.keystore.location": Text("*", None),
    "ssl.keystore.password": Text("*", None),
    "ssl.providers": Text("*", None),
    "ssl.sigalgs.list": Text("*", None),
    "ssl_ca": Callback("*"),
    "ssl_certificate": Callback("*"),
    "ssl_engine_callback_data": Callback("*"),
    "ssl_key": Callback("*"),
    "statistics.interval.ms": Number("*", 0, 86400000, 0),
    "stats_cb": Callback("*"),
    "sticky.partitioning.linger.ms": Number("P", 0, 900000, 10),
    "throttle_cb": Callback("*"),
    "topic.blacklist": Text("*", None),
    "topic.metadata.propagation.max.ms": Number("*", 0, 3600000, 30000),
    "topic.metadata.refresh.fast.cnt": Number("*", 0, 1000, 10),
    "topic.metadata.refresh.fast.interval.ms": Number("*", 1, 60000, 100),
    "topic.metadata.refresh.interval.ms": Number("*", -1, 3600000, 300000),
    "topic.metadata.refresh.sparse": Switch("*", True),
    "transaction.timeout.ms": Number("P", 1000, 2147483647, 60000),
    "transactional.id": Text("P", None),
}

# Keys that become a key of kafkapy with the same value.
TRANSLATED: dict[str, str] = {
    "allow.auto.create.topics": "allow.auto.create.topics",
    "batch.size": "batch.size",
    "check.crcs": "check.crcs",
    "client.id": "client.id",
    "client.rack": "client.rack",
    "enable.idempotence": "enable.idempotence",
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.min.bytes": "fetch.min.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "group.id": "group.id",
    "group.instance.id": "group.instance.id",
    "group.protocol": "group.protocol",
    "isolation.level": "isolation.level",
    "max.poll.interval.ms": "max.poll.interval.ms",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "metadata.recovery.rebootstrap.trigger.ms": "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy": "metadata.recovery.strategy",
    "partition.assignment.strategy": "partition.assignment.strategy",
    "queue.buffering.max.ms": "linger.ms",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "transaction.timeout.ms": "transaction.timeout.ms",
    "transactional.id": "transactional.id",
}
# Keys that are translated only if they are set, because kafkapy has the same default or none.
TRANSLATED_IF_SET: dict[str, str] = {
    "enable.metrics.push": "enable.metrics.push",
    "client.dns.lookup": "client.dns.lookup",
    "group.remote.assignor": "group.remote.assignor",
    "heartbeat.interval.ms": "heartbeat.interval.ms",
    "max.poll.records": "max.poll.records",
    "sasl.kerberos.min.time.before.relogin": "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "session.timeout.ms": "session.timeout.ms",
    "share.acknowledgement.mode": "share.acknowledgement.mode",
    "ssl.cipher.suites": "ssl.cipher.suites",
    "sasl.oauthbearer.assertion.algorithm": "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud": "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss": "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include": "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub": "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file": "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.jwt.template.file": "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.assertion.private.key.file": "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase": "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope": "sasl.oauthbearer.scope",
    "sasl.oauthbearer.sub.claim.name": "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
# Keys that the functions of `_config` and `_security_config` or the classes of this package handle.
HANDLED = frozenset(
    (
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "compression.codec",
        "compression.level",
        "connections.max.idle.ms",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "max.in.flight.requests.per.connection",
        "message.timeout.ms",
        "metadata.broker.list",
        "partitioner",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "request.required.acks",
        "request.timeout.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.mechanisms",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.method",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "statistics.interval.ms",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.interval.ms",
    )
)

_OWN_QUEUES = "librdkafka bounds its own queues with it; kafkapy fetches two responses of each partition ahead"
_C_INTERFACE = "it concerns librdkafka's threads and its C interface"
_OLD_BROKERS = "every broker that kafkapy supports answers ApiVersions"
_DEPRECATED = "librdkafka ignores it too"
_LOG_FORM = "it changes the form of librdkafka's own log lines"
# Keys without an effect that a program could see, and why.
ACCEPTED: dict[str, str] = {
    "api.version.fallback.ms": _OLD_BROKERS,
    "api.version.request": _OLD_BROKERS,
    "api.version.request.timeout.ms": "socket.connection.setup.timeout.ms limits the whole set-up of a connection",
    "auto.commit.enable": "only the legacy consumer of librdkafka's C interface has it",
    "batch.num.messages": "batch.size limits a batch",
    "broker.address.ttl": "an address is resolved for each new connection",
    "broker.version.fallback": _OLD_BROKERS,
    "builtin.features": "it describes the build of librdkafka",
    "consume.callback.max.messages": _C_INTERFACE,
    "coordinator.query.interval.ms": "the coordinator is looked up again when a request to it fails",
    "debug": "it names contexts of librdkafka; Python's logger kafkapy.client at DEBUG logs those of kafkapy",
    "enable.random.seed": _C_INTERFACE,
    "enabled_events": _C_INTERFACE,
    "fetch.error.backoff.ms": "retry.backoff.ms is the pause after a failed fetch",
    "fetch.queue.backoff.ms": _OWN_QUEUES,
    "group.protocol.type": "consumer is the only type of a consumer's group",
    "internal.termination.signal": _C_INTERFACE,
    "log.connection.close": _LOG_FORM,
    "log.queue": "log lines are always handed over by poll",
    "log.thread.name": _LOG_FORM,
    "log_level": "the level of the program's logger applies",
    "message.copy.max.bytes": "kafkapy copies each record once, into its batch",
    "metadata.max.age.ms": "metadata are kept until the next update",
    "offset.store.path": _DEPRECATED,
    "offset.store.sync.interval.ms": _DEPRECATED,
    "produce.offset.report": _DEPRECATED,
    "queue.buffering.backpressure.threshold": "a producer has one request in the making for each broker",
    "queued.max.messages.kbytes": _OWN_QUEUES,
    "queued.min.messages": _OWN_QUEUES,
    "receive.message.max.bytes": "kafkapy accepts responses of up to 1 GiB",
    "reconnect.backoff.jitter.ms": _DEPRECATED,
    "sasl.kerberos.kinit.cmd": "kafkapy gets its ticket from the keytab itself",
    "socket.blocking.max.ms": _DEPRECATED,
    "socket.keepalive.enable": "idle connections are opened again when they are needed",
    "socket.max.fails": "a request that times out closes its connection, as with librdkafka's default",
    "socket.nagle.disable": "kafkapy writes whole requests, so that Nagle's algorithm has nothing to delay",
    "ssl.ca.certificate.stores": "it applies to Windows only",
    "sticky.partitioning.linger.ms": "the partition of records without a key changes with each batch",
    "topic.metadata.refresh.fast.cnt": _DEPRECATED,
    "topic.metadata.refresh.fast.interval.ms": "retry.backoff.ms is the pause between two requests for metadata",
    "topic.metadata.refresh.sparse": "only the topics that are used are requested, as with librdkafka's default",
}
_ENGINE = "kafkapy uses the OpenSSL library of Python, which cannot be given another engine or provider"
_OF_PYTHONS_TLS = "Python's TLS library has no setting for it"
# Keys that cannot be honoured, and why; their default is accepted.
REFUSED: dict[str, str] = {
    "broker.address.family": "kafkapy tries the addresses of both families",
    "enable.gapless.guarantee": "kafkapy's producer goes on after a record that could not be delivered",
    "enable.ssl.certificate.verification": "kafkapy always checks the broker's certificate; ssl.ca.location names the "
    "file of the authority that has signed it",
    "https.ca.location": "kafkapy checks the token endpoint against the certificates of the system",
    "https.ca.pem": "kafkapy checks the token endpoint against the certificates of the system",
    "offset.store.method": "offsets are stored by the broker",
    "plugin.library.paths": "plug-ins of librdkafka are libraries for its C interface",
    "queuing.strategy": "kafkapy keeps the order of records",
    "sasl.oauthbearer.assertion.private.key.pem": "the key has to be in a file, which "
    "sasl.oauthbearer.assertion.private.key.file names",
    "sasl.oauthbearer.metadata.authentication.type": "kafkapy has no client for the metadata services of clouds",
    "ssl.crl.location": "kafkapy's clients have no lists of revoked certificates",
    "ssl.curves.list": _OF_PYTHONS_TLS,
    "ssl.engine.id": _ENGINE,
    "ssl.engine.location": _ENGINE,
    "ssl.providers": _ENGINE,
    "ssl.sigalgs.list": _OF_PYTHONS_TLS,
    "topic.blacklist": "kafkapy's client has no list of topics to hide; choose the topics by the subscription",
}
