"""Configuration keys: authorization, delegation tokens, TLS."""

from kafkapy.config.row import (
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, NON_NULL_STRING, at_least, list_of, one_of

# The keys that may change while the broker runs, with a listener's prefix only (KIP-226, KIP-651).
RECONFIGURABLE_KEYS = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)

ROWS = (
    key(
        "authorizer.class.name", STRING, "", NON_NULL_STRING, LOW, READ_ONLY,
        "Class that authorizes requests: one of Kafka's own, or a Python class as package.module:Class; empty allows every request.",
    ),
    key(
        "principal.builder.class", CLASS, "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", ANY, MEDIUM, PER_BROKER,
        "Python class that names the principals of connections. Of Kafka's Java classes only the default one is accepted.",
    ),
    inert("security.providers", STRING, None, ANY, LOW, READ_ONLY, "Java security providers."),
    key(
        "delegation.token.secret.key", PASSWORD, None, ANY, MEDIUM, READ_ONLY,
        "Secret that signs delegation tokens; the same on every broker.",
    ),
    key(
        "delegation.token.max.lifetime.ms", LONG, 604800000, at_least(1), MEDIUM, READ_ONLY,
        "Maximum lifetime of a delegation token.",
    ),
    key(
        "delegation.token.expiry.time.ms", LONG, 86400000, at_least(1), MEDIUM, READ_ONLY,
        "Time after which a delegation token expires unless it is renewed.",
    ),
    key(
        "delegation.token.expiry.check.interval.ms", LONG, 3600000, at_least(1), LOW, READ_ONLY,
        "Interval at which expired tokens are removed.",
    ),
    key(
        "ssl.allow.dn.changes", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Allow a reloaded certificate to change its distinguished name.",
    ),
    key(
        "ssl.allow.san.changes", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Allow a reloaded certificate to lose alternative names.",
    ),
    key(
        "ssl.cipher.suites", LIST, "", list_of(), MEDIUM, PER_BROKER,
        "Cipher suites offered, by their IANA names; an empty list means OpenSSL's suites with forward secrecy.",
    ),
    key(
        "ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), MEDIUM, PER_BROKER,
        "Whether clients must (required), may (requested) or need not (none) show a certificate. For a SASL_SSL listener only with the prefix of the listener.",
    ),
    key("ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", list_of(), MEDIUM, PER_BROKER, "TLS versions accepted."),
    key(
        "ssl.endpoint.identification.algorithm", STRING, "https", ANY, LOW, PER_BROKER,
        "How a server's name is checked against its certificate; empty means that it is not checked.",
    ),
    key("ssl.engine.factory.class", CLASS, None, ANY, LOW, PER_BROKER, "Python class that supplies keys and certificates instead of the stores."),
    key("ssl.key.password", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Password of the private key."),
    inert("ssl.keymanager.algorithm", STRING, "SunX509", ANY, MEDIUM, PER_BROKER, "Algorithm of Java's key manager."),
    key("ssl.keystore.certificate.chain", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Certificate chain in PEM form."),
    key("ssl.keystore.key", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Private key in PEM (PKCS #8)."),
    key("ssl.keystore.location", STRING, None, ANY, MEDIUM, PER_BROKER, "File of the key store."),
    key("ssl.keystore.password", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Password of the key store."),
    key("ssl.keystore.type", STRING, "JKS", ANY, MEDIUM, PER_BROKER, "Format of the key store: JKS, PKCS12 or PEM."),
    key(
        "ssl.principal.mapping.rules", STRING, "DEFAULT", ANY, LOW, READ_ONLY,
        "Rules that map a distinguished name to a principal.",
    ),
    inert("ssl.protocol", STRING, "TLSv1.3", ANY, MEDIUM, PER_BROKER, "TLS version of outbound connections."),
    inert("ssl.provider", STRING, None, ANY, MEDIUM, PER_BROKER, "Java security provider of TLS."),
    inert(
        "ssl.secure.random.implementation", STRING, None, ANY, LOW, PER_BROKER,
        "Java random number generator of TLS.",
    ),
    inert("ssl.trustmanager.algorithm", STRING, "PKIX", ANY, MEDIUM, PER_BROKER, "Algorithm of Java's trust manager."),
    key("ssl.truststore.certificates", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Trusted certificates in PEM form."),
    key("ssl.truststore.location", STRING, None, ANY, MEDIUM, PER_BROKER, "File of the trust store."),
    key("ssl.truststore.password", PASSWORD, None, ANY, MEDIUM, PER_BROKER, "Password of the trust store."),
    key("ssl.truststore.type", STRING, "JKS", ANY, MEDIUM, PER_BROKER, "Format of the trust store: JKS, PKCS12 or PEM."),
)
