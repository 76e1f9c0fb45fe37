"""Third-party clients, the forms of TLS and SASL that each supports, and their settings in each form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kafkapy.security.tls.pem import parse_blocks
from tests.certificates import PASSWORD as STORE_PASSWORD
from tests.clients.aiokafka_client import AiokafkaClient
from tests.clients.client import Client
from tests.clients.confluent_client import ConfluentClient
from tests.clients.kcat_client import KcatClient
from tests.clients.legacy import installation
from tests.clients.legacy.program_client import ProgramClient
from tests.harness.certificates import CertificateAuthority
from tests.jks_writer import jks_file, key_entry, trusted_entry
from tests.kerberos import REALM, KerberosRealm
from tests.oauth_tokens import unsecured_token
from tests.peers import kafka_directory
from tests.security.secured_kafka import USERS

USER = "alice"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI")
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    **dict.fromkeys(SCRAM, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


class Form(NamedTuple):
    """A security protocol and its mechanism; SSL authenticates by the client's certificate."""

    protocol: str
    mechanism: str = ""

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def __str__(self) -> str:
        return f"{self.protocol}-{self.mechanism}".rstrip("-")


FORMS = (Form("SSL"), *(Form(f"SASL_{kind}", each) for kind in ("SSL", "PLAINTEXT") for each in MECHANISMS))


class Kind(NamedTuple):
    """A client. `gaps` are the mechanisms that the client does not support, each with the reason."""

    name: str
    driver: str
    release: str = ""
    gaps: Mapping[str, str] = {}

    def supports(self, form: Form) -> bool:
        return form.mechanism not in self.gaps


_NO_GSSAPI = {"GSSAPI": "needs the package gssapi, which needs a compiler and Kerberos's headers"}
_NO_SCRAM = dict.fromkeys(SCRAM, "the release has no SCRAM")
_OLD_SCRAM = dict.fromkeys(
    SCRAM, "librdkafka before 2.6.1 repeats its nonce, which Kafka refuses since CVE-2024-56128, and kafkapy too"
)
_NO_OAUTH = {"OAUTHBEARER": "the release has no OAUTHBEARER"}
KINDS = (
    Kind("kcat", "kcat", gaps=_OLD_SCRAM),
    Kind("confluent-kafka", "confluent-kafka", gaps={"GSSAPI": "the wheel is built without GSSAPI"}),
    Kind("aiokafka", "aiokafka", gaps=_NO_GSSAPI),
    Kind("kafka-python-3.0.12", "kafka-python", "3.0.12", _NO_GSSAPI),
    Kind("kafka-python-2.0.2", "kafka-python", "2.0.2", _NO_GSSAPI),
    Kind("kafka-python-1.4.7", "kafka-python", "1.4.7", {**_NO_GSSAPI, **_NO_SCRAM}),
    Kind("kafkajs", "kafkajs", "2.2.4", {"GSSAPI": "the library has no GSSAPI"}),
    Kind("java-4.3.0", "java", "4.3.0"),
    Kind("java-3.9.1", "java", "3.9.1"),
    Kind("java-2.8.2", "java", "2.8.2"),
    Kind("java-1.1.1", "java", "1.1.1", _NO_OAUTH),
    Kind("java-0.10.1.1", "java", "0.10.1.1", {**_NO_OAUTH, **_NO_SCRAM}),
)


class Workshop:
    """Makes the clients with their certificates, tickets and files, which are in `directory`."""

    def __init__(self, directory: Path, authority: CertificateAuthority, realm: KerberosRealm | None) -> None:
        self._directory = directory
        self._authority = authority
        self._realm = realm
        self._identity = authority.issue("client", subject=f"/O=Test/CN={USER}", names=())
        chain = [_der(each.read_text()) for each in (self._identity.chain_file, authority.certificate_file)]
        key = _der(self._identity.key_file.read_text())
        self._trust_store, self._key_store = directory / "trust.jks", directory / "keys.jks"
        self._trust_store.write_bytes(jks_file(STORE_PASSWORD, trusted_entry("ca", chain[1])))
        self._key_store.write_bytes(jks_file(STORE_PASSWORD, key_entry("client", key, STORE_PASSWORD, chain)))

    def make(self, kind: Kind, form: Form, password: str = USERS[USER]) -> Client:
        """Returns a client with its settings. The caller closes a ProgramClient."""
        if kind.driver == "kcat":
            return KcatClient(kind.name, [f"{key}={value}" for key, value in self._librdkafka(form, password).items()])
        if kind.driver == "confluent-kafka":
            settings: dict[str, Any] = self._librdkafka(form, password)
            return ConfluentClient(kind.name, {**settings, "log_level": "0"})
        if kind.driver == "aiokafka":
            return AiokafkaClient(self._aiokafka(form, password))
        command = {
            "kafka-python": lambda: [*installation.kafka_python(kind.release), *_pairs(self._python(form, password))],
            "kafkajs": lambda: [*installation.kafkajs(kind.release), json.dumps(self._kafkajs(form, password))],
            "java": lambda: self._java(kind, form, password),
        }[kind.driver]()
        return ProgramClient(kind.name, command, self._directory / f"{kind.name}-{form}.log")

    def _librdkafka(self, form: Form, password: str) -> dict[str, str]:
        settings = {"security.protocol": form.protocol}
        if form.has_tls:
            settings["ssl.ca.location"] = str(self._authority.certificate_file)
        if form.protocol == "SSL":
            settings["ssl.certificate.location"] = str(self._identity.chain_file)
            settings["ssl.key.location"] = str(self._identity.key_file)
        if form.mechanism:
            settings["sasl.mechanisms"] = form.mechanism
        if form.mechanism in ("PLAIN", *SCRAM):
            settings |= {"sasl.username": USER, "sasl.password": password}
        if form.mechanism == "OAUTHBEARER":
            settings |= {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={USER}",
            }
        if form.mechanism == "GSSAPI":
            settings |= {"sasl.kerberos.service.name": "kafka", "sasl.kerberos.kinit.cmd": "true"}
        return settings

    def _aiokafka(self, form: Form, password: str) -> dict[str, Any]:
        from aiokafka.abc import AbstractTokenProvider
        from aiokafka.helpers import create_ssl_context

        class Provider(AbstractTokenProvider):
            async def token(self) -> str:
                return unsecured_token()

        settings: dict[str, Any] = {"security_protocol": form.protocol}
        if form.has_tls:
            own = (
                (str(self._identity.chain_file), str(self._identity.key_file))
                if form.protocol == "SSL"
                else (None, None)
            )
            settings["ssl_context"] = create_ssl_context(
                cafile=str(self._authority.certificate_file), certfile=own[0], keyfile=own[1]
            )
        return settings | _sasl(form, password, {"sasl_oauth_token_provider": Provider()})

    def _python(self, form: Form, password: str) -> dict[str, str]:
        settings = {"security_protocol": form.protocol}
        if form.has_tls:
            settings["ssl_cafile"] = str(self._authority.certificate_file)
        if form.protocol == "SSL":
            settings["ssl_certfile"], settings["ssl_keyfile"] = (
                str(self._identity.chain_file),
                str(self._identity.key_file),
            )
        return settings | _sasl(form, password, {"oauth_token": unsecured_token()})

    def _kafkajs(self, form: Form, password: str) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if form.has_tls:
            settings["ssl"] = {"ca": [self._authority.certificate_file.read_text()]}
        if form.protocol == "SSL":
            settings["ssl"] |= {
                "cert": self._identity.chain_file.read_text(),
                "key": self._identity.key_file.read_text(),
            }
        if form.mechanism == "OAUTHBEARER":
            settings["oauthToken"] = unsecured_token()
        elif form.mechanism:
            settings["sasl"] = {"mechanism": form.mechanism.lower(), "username": USER, "password": password}
        return settings

    def _java(self, kind: Kind, form: Form, password: str) -> list[str]:
        settings = {"security.protocol": form.protocol}
        if form.has_tls:
            settings |= {"ssl.truststore.location": str(self._trust_store), "ssl.truststore.password": STORE_PASSWORD}
        if form.protocol == "SSL":
            settings |= {
                "ssl.keystore.location": str(self._key_store),
                "ssl.keystore.password": STORE_PASSWORD,
                "ssl.key.password": STORE_PASSWORD,
            }
        options = []
        if form.mechanism:
            settings["sasl.mechanism"] = form.mechanism
            entry = f"{_MODULES[form.mechanism]} required {self._jaas_options(form.mechanism, password)};"
            if kind.release.startswith("0.10"):  # these releases have no sasl.jaas.config
                path = self._directory / f"{kind.name}-{form}.jaas"
                path.write_text(f"KafkaClient {{ {entry} }};\n")
                options.append(f"-Djava.security.auth.login.config={path}")
            else:
                settings["sasl.jaas.config"] = entry
        if form.mechanism == "GSSAPI":
            assert self._realm is not None
            settings["sasl.kerberos.service.name"] = "kafka"
            options.append(f"-Djava.security.krb5.conf={self._realm.config}")
        command = [*installation.java(kind.release), *_pairs(settings)]
        if form.mechanism == "OAUTHBEARER":
            # Before 3.0 the client needs Jackson for tokens, which it does not declare as a dependency.
            jackson = sorted((kafka_directory("4.3.0") / "libs").glob("jackson-*.jar"))
            place = command.index("-cp") + 1
            command[place] = ":".join((command[place], *map(str, jackson)))
        return [command[0], *options, *command[1:]]

    def _jaas_options(self, mechanism: str, password: str) -> str:
        if mechanism == "OAUTHBEARER":
            return f'unsecuredLoginStringClaim_sub="{USER}"'
        if mechanism == "GSSAPI":
            assert self._realm is not None
            keytab = self._realm.add_service(USER)
            return f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{USER}@{REALM}"'
        return f'username="{USER}" password="{password}"'


def _sasl(form: Form, password: str, of_bearer: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of SASL by the names of the clients in Python; those for OAUTHBEARER are given."""
    if not form.mechanism:
        return {}
    by_password = {"sasl_plain_username": USER, "sasl_plain_password": password}
    return {"sasl_mechanism": form.mechanism, **(of_bearer if form.mechanism == "OAUTHBEARER" else by_password)}


def _pairs(settings: Mapping[str, str]) -> Sequence[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _der(pem: str) -> bytes:
    return parse_blocks(pem)[0].content
