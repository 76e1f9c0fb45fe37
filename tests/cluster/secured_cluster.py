"""A cluster whose nodes authenticate, and encrypt if wanted, what they send to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster, Spec, Voters
from tests.harness.certificates import PASSWORD, CertificateAuthority
from tests.kerberos import REALM, KerberosRealm
from tests.ports import free_port
from tests.security.secured_kafka import PLAIN_MODULE, SCRAM_MODULE

USER, SECRET = "node", "node-secret"
MECHANISM = "SCRAM-SHA-512"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
# A session between nodes ends after this time.
SESSION_MS = 4000


class SecuredCluster(Cluster):
    """Nodes that reach brokers by the listener NODES with SCRAM, and controllers by CONTROLLER with PLAIN.

    `protocol` is the security protocol of both listeners; with SSL they require certificates instead. Clients use the
    listener PLAINTEXT.
    """

    def __init__(
        self,
        directory: Path,
        specs: Sequence[Spec],
        protocol: str,
        *,
        voters: Voters = Voters.INITIAL,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`more` are further properties of every node; they replace those of this class."""
        plain = f'{PLAIN_MODULE} required username="{USER}" password="{SECRET}" user_{USER}="{SECRET}";'
        scram = f'{SCRAM_MODULE} required username="{USER}" password="{SECRET}";'
        properties = {
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,NODES:{protocol},CONTROLLER:{protocol}",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.nodes.sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.nodes.{MECHANISM.lower()}.sasl.jaas.config": scram,
            f"listener.name.nodes.{MECHANISM.lower()}.connections.max.reauth.ms": str(SESSION_MS),
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": plain,
            "listener.name.controller.plain.connections.max.reauth.ms": str(SESSION_MS),
            **({} if protocol == "SASL_PLAINTEXT" else _tls(directory / "certificates")),
            **(more or {}),
        }
        flags = ["--add-scram", f"{MECHANISM}=[name={USER},password={SECRET}]"]
        super().__init__(directory, specs, voters=voters, properties=properties, flags=flags)
        for node in self.brokers:
            listeners = [f"PLAINTEXT://{node.bootstrap}", f"NODES://localhost:{free_port()}"]
            if node.is_controller:
                listeners.append(f"CONTROLLER://{node.controller_address}")
            node.properties |= {
                "listeners": ",".join(listeners),
                "advertised.listeners": ",".join(listeners),
                "inter.broker.listener.name": "NODES",
            }
            node.write_config(self._quorum)


def kerberos(realm: KerberosRealm) -> dict[str, str]:
    """Returns the properties with which the nodes authenticate to each other by GSSAPI."""
    keytab = realm.add_service("kafka/localhost")
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/localhost@{REALM}"'
    login = f"{KERBEROS_MODULE} required {options};"
    return {
        "sasl.kerberos.service.name": "kafka",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "listener.name.nodes.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.nodes.gssapi.sasl.jaas.config": login,
        "listener.name.controller.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.controller.gssapi.sasl.jaas.config": login,
    }


def _tls(directory: Path) -> dict[str, str]:
    authority = CertificateAuthority(directory)
    store = authority.issue("node", subject="/CN=node/OU=brokers/O=Test").pkcs12_file
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate_file),
        "ssl.client.auth": "required",  # has no effect with SASL_SSL
    }
