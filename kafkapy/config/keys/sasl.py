"""Configuration keys: SASL authentication."""

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
    PER_BROKER,
    READ_ONLY,
    SHORT,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, between, list_of, one_of_ignoring_case

ROWS = (
    key("sasl.enabled.mechanisms", LIST, "GSSAPI", list_of(), MEDIUM, PER_BROKER, "SASL mechanisms accepted."),
    key(
        "sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", ANY, MEDIUM, PER_BROKER,
        "SASL mechanism of connections between brokers.",
    ),
    key(
        "sasl.mechanism.controller.protocol", STRING, "GSSAPI", ANY, HIGH, READ_ONLY,
        "SASL mechanism of connections to controllers.",
    ),
    key(
        "sasl.jaas.config", PASSWORD, None, ANY, MEDIUM, PER_BROKER,
        "Login context in JAAS form. A broker reads it only with the prefixes of a listener and a mechanism.",
    ),
    inert(
        "sasl.client.callback.handler.class", CLASS, None, ANY, MEDIUM, READ_ONLY,
        "Java class with the client's callbacks.",
    ),
    inert(
        "sasl.login.callback.handler.class", CLASS, None, ANY, MEDIUM, READ_ONLY,
        "Java class with the login's callbacks.",
    ),
    key(
        "sasl.server.callback.handler.class", CLASS, None, ANY, MEDIUM, READ_ONLY,
        "Python class that checks the credentials of clients.",
    ),
    inert("sasl.login.class", CLASS, None, ANY, MEDIUM, READ_ONLY, "Java class of the login."),
    inert(
        "sasl.login.connect.timeout.ms", INT, None, ANY, LOW, READ_ONLY,
        "Connect timeout of the login to its provider.",
    ),
    inert("sasl.login.read.timeout.ms", INT, None, ANY, LOW, READ_ONLY, "Read timeout of the login to its provider."),
    inert(
        "sasl.login.refresh.buffer.seconds", SHORT, 300, ANY, MEDIUM, PER_BROKER,
        "Time before expiry within which a credential is not refreshed.",
    ),
    inert(
        "sasl.login.refresh.min.period.seconds", SHORT, 60, ANY, MEDIUM, PER_BROKER,
        "Shortest time between two refreshes.",
    ),
    inert(
        "sasl.login.refresh.window.factor", DOUBLE, 0.8, ANY, MEDIUM, PER_BROKER,
        "Share of a credential's life after which it is refreshed.",
    ),
    inert(
        "sasl.login.refresh.window.jitter", DOUBLE, 0.05, ANY, MEDIUM, PER_BROKER,
        "Random share added to the refresh window.",
    ),
    inert(
        "sasl.login.retry.backoff.ms", LONG, 100, ANY, LOW, READ_ONLY,
        "First pause before the login is tried again.",
    ),
    inert(
        "sasl.login.retry.backoff.max.ms", LONG, 10000, ANY, LOW, READ_ONLY,
        "Longest pause before the login is tried again.",
    ),
    key(
        "sasl.server.max.receive.size", INT, 524288, ANY, MEDIUM, READ_ONLY,
        "Largest message accepted before authentication.",
    ),
    inert("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", ANY, MEDIUM, PER_BROKER, "Path of kinit."),
    inert(
        "sasl.kerberos.min.time.before.relogin", LONG, 60000, ANY, MEDIUM, PER_BROKER,
        "Pause of the refresh thread between two logins.",
    ),
    key(
        "sasl.kerberos.principal.to.local.rules", LIST, "DEFAULT", list_of(), MEDIUM, PER_BROKER,
        "Rules that map a Kerberos principal to a short name.",
    ),
    inert("sasl.kerberos.service.name", STRING, None, ANY, MEDIUM, PER_BROKER, "Kerberos service name of the brokers."),
    inert(
        "sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, ANY, MEDIUM, PER_BROKER,
        "Random share added to the renewal time.",
    ),
    inert(
        "sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, ANY, MEDIUM, PER_BROKER,
        "Share of a ticket's life after which it is renewed.",
    ),
    inert(
        "sasl.oauthbearer.assertion.algorithm", STRING, "RS256", one_of_ignoring_case("ES256", "RS256"), MEDIUM, READ_ONLY,
        "Algorithm that signs the client's assertion.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.aud", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Claim aud of the client's assertion.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, between(0, 86400), LOW, READ_ONLY,
        "Life of the client's assertion.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.iss", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Claim iss of the client's assertion.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, ANY, MEDIUM, READ_ONLY,
        "Give each assertion an id.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, between(0, 3600), LOW, READ_ONLY,
        "How far before now an assertion becomes valid.",
    ),
    inert(
        "sasl.oauthbearer.assertion.claim.sub", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Claim sub of the client's assertion.",
    ),
    inert("sasl.oauthbearer.assertion.file", STRING, None, ANY, MEDIUM, READ_ONLY, "File with a finished assertion."),
    inert(
        "sasl.oauthbearer.assertion.private.key.file", STRING, None, ANY, MEDIUM, READ_ONLY,
        "File with the key that signs assertions.",
    ),
    inert(
        "sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, ANY, MEDIUM, READ_ONLY,
        "Passphrase of the key that signs assertions.",
    ),
    inert(
        "sasl.oauthbearer.assertion.template.file", STRING, None, ANY, MEDIUM, READ_ONLY,
        "File with static headers and claims of assertions.",
    ),
    inert(
        "sasl.oauthbearer.client.credentials.client.id", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Client id of the client credentials grant.",
    ),
    inert(
        "sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, ANY, MEDIUM, READ_ONLY,
        "Client secret of the client credentials grant.",
    ),
    key(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, ANY, LOW, READ_ONLY,
        "Difference of clocks tolerated when a token is checked.",
    ),
    key(
        "sasl.oauthbearer.expected.audience", LIST, "", list_of(), LOW, READ_ONLY,
        "Audiences of which a token must name one.",
    ),
    key("sasl.oauthbearer.expected.issuer", STRING, None, ANY, LOW, READ_ONLY, "Issuer that a token must name."),
    key(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3600000, ANY, LOW, READ_ONLY,
        "Interval of fetching the provider's keys.",
    ),
    key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, ANY, LOW, READ_ONLY,
        "Longest pause between attempts to fetch the keys.",
    ),
    key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, ANY, LOW, READ_ONLY,
        "First pause between attempts to fetch the keys.",
    ),
    key("sasl.oauthbearer.jwks.endpoint.url", STRING, None, ANY, MEDIUM, READ_ONLY, "URL of the provider's keys."),
    inert(
        "sasl.oauthbearer.jwt.retriever.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", ANY, MEDIUM, READ_ONLY,
        "Java class that fetches tokens.",
    ),
    inert(
        "sasl.oauthbearer.jwt.validator.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", ANY, MEDIUM, READ_ONLY,
        "Java class that checks tokens.",
    ),
    inert("sasl.oauthbearer.scope", STRING, None, ANY, MEDIUM, READ_ONLY, "Scope to request in tokens."),
    key(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", ANY, LOW, READ_ONLY,
        "Name of the claim with the scope.",
    ),
    key("sasl.oauthbearer.sub.claim.name", STRING, "sub", ANY, LOW, READ_ONLY, "Name of the claim with the subject."),
    inert("sasl.oauthbearer.token.endpoint.url", STRING, None, ANY, MEDIUM, READ_ONLY, "URL that issues tokens."),
)
