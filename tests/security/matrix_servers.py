"""Servers for the matrix of clients: Apache Kafka and kafkapy on the same configuration file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafkapy.client.admin import Admin, NewScramCredential
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NAME
from tests.broker_process import BrokerProcess
from tests.harness.certificates import CertificateAuthority
from tests.kerberos import REALM, KerberosRealm
from tests.peers import kafka_directory
from tests.security.client_matrix import MECHANISMS, SCRAM, Form
from tests.security.secured_kafka import USERS, SecuredKafka

_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"


class KerberosKafka(SecuredKafka):
    """A process of Apache Kafka that is configured for the Kerberos realm of the test, if there is one."""

    realm: KerberosRealm | None = None

    def command(self) -> list[str]:
        java, *others = super().command()
        return [java, *([f"-Djava.security.krb5.conf={self.realm.config}"] if self.realm else []), *others]


class MatrixServer:
    """A running server with a listener of each protocol, on which every mechanism is enabled."""

    def __init__(self, kafka: KerberosKafka, *, is_apache: bool) -> None:
        self._kafka = kafka
        self.is_apache = is_apache

    @property
    def admin_address(self) -> str:
        return self._kafka.bootstrap

    def address(self, form: Form) -> str:
        return self._kafka.address(form.protocol)

    def new_topic(self, name: str) -> None:
        from kafkapy.client.admin import NewTopic

        with Admin(bootstrap_servers=self.admin_address) as admin:
            admin.create_topics([NewTopic(name, partitions=1)]).check()


@contextmanager
def running(
    directory: Path, authority: CertificateAuthority, realm: KerberosRealm | None, *, is_apache: bool = False
) -> Iterator[MatrixServer]:
    """Runs a server; Apache Kafka is installed only if it is the server, or has been."""
    mechanisms = [each for each in MECHANISMS if realm is not None or each != "GSSAPI"]
    kafka = KerberosKafka(kafka_directory("4.3.0"), directory, authority, _properties(mechanisms, realm))
    kafka.realm = realm
    if is_apache:
        with kafka:
            yield MatrixServer(kafka, is_apache=True)
        return
    environment = {} if realm is None else realm.environment()
    with BrokerProcess(directory, config=kafka.config, port=kafka.port, environment=environment) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            for mechanism in map(MECHANISMS_BY_NAME.__getitem__, SCRAM):
                wanted = [NewScramCredential(user, mechanism, password) for user, password in USERS.items()]
                admin.alter_user_scram_credentials(wanted).check()
        yield MatrixServer(kafka, is_apache=False)


def _properties(mechanisms: list[str], realm: KerberosRealm | None) -> Mapping[str, str]:
    found = {
        # The listener of the sessions that end soon, which clients of every age cannot prolong.
        "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "3600000",
        "kafkapy.sasl.oauthbearer.unsecured.tokens.enable": "true",
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        found[f"listener.name.{listener}.sasl.enabled.mechanisms"] = ",".join(mechanisms)
        found[f"listener.name.{listener}.oauthbearer.sasl.jaas.config"] = _OAUTH
        if realm is not None:
            keytab = realm.add_service("kafka/localhost")
            entry = f'{_KERBEROS} useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/localhost@{REALM}";'
            found[f"listener.name.{listener}.gssapi.sasl.jaas.config"] = entry
    if realm is not None:
        found["sasl.kerberos.service.name"] = "kafka"
    return found
