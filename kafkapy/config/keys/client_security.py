"""Configuration keys of all clients: TLS and SASL."""

from kafkapy.config.row import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    SHORT,
    STRING,
    client_key,
    inert_client_key,
)
from kafkapy.config.validator import ANY, between, one_of_ignoring_case

ROWS = (
    inert_client_key(
        "sasl.client.callback.handler.class", CLASS, None, ANY, MEDIUM,
        "Java class with the client's callbacks.",
    ),
    client_key(
        "sasl.jaas.config", PASSWORD, None, ANY, MEDIUM,
        "Login context in JAAS form.",
    ),
    inert_client_key(
        "sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", ANY, LOW,
        "Path of kinit.",
    ),
    inert_client_key(
        "sasl.kerberos.min.time.before.relogin", LONG, 60000, ANY, LOW,
        "Pause of the refresh thread between two logins.",
    ),
    client_key(
        "sasl.kerberos.service.name", STRING, None, ANY, MEDIUM,
        "Kerberos service name of the brokers.",
    ),
    inert_client_key(
        "sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, ANY, LOW,
        "Random share added to the renewal time.",
    ),
    inert_client_key(
        "sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, ANY, LOW,
        "Share of a ticket's life after which it is renewed.",
    ),
    client_key(
        "sasl.login.callback.handler.class", CLASS, None, ANY, MEDIUM,
        "Python function that returns OAuth tokens, as module:name.",
    ),
    inert_client_key(
        "sasl.login.class", CLASS, None, ANY, MEDIUM,
        "Java class of the login.",
    ),
    client_key(
        "sasl.login.connect.timeout.ms", INT, None, ANY, LOW,
        "Connect timeout of the login to its provider.",
    ),
    client_key(
        "sasl.login.read.timeout.ms", INT, None, ANY, LOW,
        "Read timeout of the login to its provider.",
    ),
    client_key(
        "sasl.login.refresh.buffer.seconds", SHORT, 300, between(0, 3600), LOW,
        "Time before expiry within which a credential is not refreshed.",
    ),
    client_key(
        "sasl.login.refresh.min.period.seconds", SHORT, 60, between(0, 900), LOW,
        "Shortest time between two refreshes.",
    ),
    client_key(
        "sasl.login.refresh.window.factor", DOUBLE, 0.8, between(0.5, 1.0), LOW,
        "Share of a credential's life after which it is refreshed.",
    ),
    client_key(
        "sasl.login.refresh.window.jitter", DOUBLE, 0.05, between(0.0, 0.25), LOW,
        "Random share added to the refresh window.",
    ),
    client_key(
        "sasl.login.retry.backoff.max.ms", LONG, 10000, ANY, LOW,
        "Longest pause before the login is tried again.",
    ),
    client_key(
        "sasl.login.retry.backoff.ms", LONG, 100, ANY, LOW,
        "First pause before the login is tried again.",
    ),
    client_key(
        "sasl.mechanism", STRING, "GSSAPI", ANY, MEDIUM,
        "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.algorithm", STRING, "RS256", one_of_ignoring_case("ES256", "RS256"), MEDIUM,
        "Algorithm that signs the client's assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.aud", STRING, None, ANY, MEDIUM,
        "Claim aud of the client's assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, between(0, 86400), LOW,
        "Life of the client's assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.iss", STRING, None, ANY, MEDIUM,
        "Claim iss of the client's assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, ANY, MEDIUM,
        "Give each assertion an id.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, between(0, 3600), LOW,
        "How far before now an assertion becomes valid.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.claim.sub", STRING, None, ANY, MEDIUM,
        "Claim sub of the client's assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.file", STRING, None, ANY, MEDIUM,
        "File with a finished assertion.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.private.key.file", STRING, None, ANY, MEDIUM,
        "File with the key that signs assertions.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, ANY, MEDIUM,
        "Passphrase of the key that signs assertions.",
    ),
    client_key(
        "sasl.oauthbearer.assertion.template.file", STRING, None, ANY, MEDIUM,
        "File with static headers and claims of assertions.",
    ),
    client_key(
        "sasl.oauthbearer.client.credentials.client.id", STRING, None, ANY, MEDIUM,
        "Client id of the client credentials grant.",
    ),
    client_key(
        "sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, ANY, MEDIUM,
        "Client secret of the client credentials grant.",
    ),
    inert_client_key(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, ANY, LOW,
        "Difference of clocks tolerated when a token is checked.",
    ),
    inert_client_key(
        "sasl.oauthbearer.expected.audience", LIST, "", ANY, LOW,
        "Audiences of which a token must name one.",
    ),
    inert_client_key(
        "sasl.oauthbearer.expected.issuer", STRING, None, ANY, LOW,
        "Issuer that a token must name.",
    ),
    client_key(
        "sasl.oauthbearer.header.urlencode", BOOLEAN, False, ANY, LOW,
        "URL-encode client id and secret in the header of the request for a token.",
    ),
    inert_client_key(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3600000, ANY, LOW,
        "Interval of fetching the provider's keys.",
    ),
    inert_client_key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, ANY, LOW,
        "Longest pause between attempts to fetch the keys.",
    ),
    inert_client_key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, ANY, LOW,
        "First pause between attempts to fetch the keys.",
    ),
    inert_client_key(
        "sasl.oauthbearer.jwks.endpoint.url", STRING, None, ANY, MEDIUM,
        "URL of the provider's keys.",
    ),
    client_key(
        "sasl.oauthbearer.jwt.retriever.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", ANY, MEDIUM,
        "Kafka's JwtBearerJwtRetriever selects the grant by assertion.",
    ),
    inert_client_key(
        "sasl.oauthbearer.jwt.validator.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", ANY, MEDIUM,
        "Java class that checks tokens.",
    ),
    client_key(
        "sasl.oauthbearer.scope", STRING, None, ANY, MEDIUM,
        "Scope that a token is requested for.",
    ),
    inert_client_key(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", ANY, LOW,
        "Name of the claim with the scope.",
    ),
    inert_client_key(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub", ANY, LOW,
        "Name of the claim with the subject.",
    ),
    client_key(
        "sasl.oauthbearer.token.endpoint.url", STRING, None, ANY, MEDIUM,
        "URL of the token endpoint, or of a file with a token.",
    ),
    client_key(
        "security.protocol", STRING, "PLAINTEXT", one_of_ignoring_case("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), MEDIUM,
        "Encryption and authentication of the connections to brokers.",
    ),
    inert_client_key(
        "security.providers", STRING, None, ANY, LOW,
        "Java security providers.",
    ),
    client_key(
        "ssl.cipher.suites", LIST, "", ANY, LOW,
        "Cipher suites offered; empty is the library's choice.",
    ),
    client_key(
        "ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", ANY, MEDIUM,
        "TLS versions accepted.",
    ),
    client_key(
        "ssl.endpoint.identification.algorithm", STRING, "https", ANY, LOW,
        "How a server's name is checked against its certificate; empty means that it is not checked.",
    ),
    client_key(
        "ssl.engine.factory.class", CLASS, None, ANY, LOW,
        "Python class that supplies keys and certificates.",
    ),
    client_key(
        "ssl.key.password", PASSWORD, None, ANY, HIGH,
        "Password of the private key.",
    ),
    inert_client_key(
        "ssl.keymanager.algorithm", STRING, "SunX509", ANY, LOW,
        "Algorithm of Java's key manager.",
    ),
    client_key(
        "ssl.keystore.certificate.chain", PASSWORD, None, ANY, HIGH,
        "Certificate chain in PEM form.",
    ),
    client_key(
        "ssl.keystore.key", PASSWORD, None, ANY, HIGH,
        "Private key in PEM form.",
    ),
    client_key(
        "ssl.keystore.location", STRING, None, ANY, HIGH,
        "File of the key store.",
    ),
    client_key(
        "ssl.keystore.password", PASSWORD, None, ANY, HIGH,
        "Password of the key store.",
    ),
    client_key(
        "ssl.keystore.type", STRING, "JKS", ANY, MEDIUM,
        "Format of the key store.",
    ),
    inert_client_key(
        "ssl.protocol", STRING, "TLSv1.3", ANY, MEDIUM,
        "TLS version of outbound connections.",
    ),
    inert_client_key(
        "ssl.provider", STRING, None, ANY, MEDIUM,
        "Java security provider of TLS.",
    ),
    inert_client_key(
        "ssl.secure.random.implementation", STRING, None, ANY, LOW,
        "Java random number generator of TLS.",
    ),
    inert_client_key(
        "ssl.trustmanager.algorithm", STRING, "PKIX", ANY, LOW,
        "Algorithm of Java's trust manager.",
    ),
    client_key(
        "ssl.truststore.certificates", PASSWORD, None, ANY, HIGH,
        "Trusted certificates in PEM form.",
    ),
    client_key(
        "ssl.truststore.location", STRING, None, ANY, HIGH,
        "File of the trust store.",
    ),
    client_key(
        "ssl.truststore.password", PASSWORD, None, ANY, HIGH,
        "Password of the trust store.",
    ),
    client_key(
        "ssl.truststore.type", STRING, "JKS", ANY, MEDIUM,
        "Format of the trust store.",
    ),
)
