"""Apache Kafka with a listener of each security protocol, and users of PLAIN and SCRAM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.harness.certificates import PASSWORD, CertificateAuthority
from tests.peers import ApacheKafka
from tests.ports import free_ports

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = {"admin": "admin-secret", "alice": "alice-secret"}
# A session of this mechanism on the listener SASL_PLAINTEXT ends after this time.
SHORT_SESSION_MECHANISM, SHORT_SESSION_MS = "SCRAM-SHA-256", 3000
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def login(module: str, user: str, password: str | None = None) -> str:
    """Returns a value of `sasl.jaas.config`."""
    return f'{module} required username="{user}" password="{USERS[user] if password is None else password}";'


def sasl_client(mechanism: str, user: str = "alice", password: str | None = None) -> dict[str, str]:
    """Returns the keys with which a client authenticates by SASL."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login(module, user, password)}


class SecuredKafka(ApacheKafka):
    """A node of Apache Kafka with the listeners PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL.

    The SSL listener requires a certificate of clients. The certificate of the broker is for the name localhost only.
    SASL_SSL does not have the mechanism SCRAM-SHA-256. The controller's listener uses PLAIN.
    """

    def __init__(
        self, kafka: Path, directory: Path, authority: CertificateAuthority, properties: Mapping[str, str] | None = None
    ) -> None:
        self.ports = dict(zip(("SSL", "SASL_PLAINTEXT", "SASL_SSL"), free_ports(3), strict=True))
        store = authority.issue("broker", subject="/CN=broker/OU=brokers/O=Test", names=("DNS:localhost",)).pkcs12_file
        self._secured = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate_file),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *_SCRAM)),
            "sasl.mechanism.controller.protocol": "PLAIN",
            **self._logins("sasl_plaintext"),
            **self._logins("sasl_ssl"),
            **self._logins("controller"),
            f"listener.name.sasl_plaintext.{SHORT_SESSION_MECHANISM.lower()}.connections.max.reauth.ms": str(
                SHORT_SESSION_MS
            ),
            **(properties or {}),
        }
        super().__init__(kafka, directory, heap=("-Xmx512M",))
        self.format_options = tuple(
            word
            for mechanism in _SCRAM
            for user, password in USERS.items()
            for word in ("--add-scram", f'{mechanism}=[name="{user}",password="{password}"]')
        )

    def address(self, protocol: str) -> str:
        """Returns the address of the listener with this security protocol."""
        return f"localhost:{self.ports.get(protocol, self.port)}"

    @staticmethod
    def _logins(listener: str) -> dict[str, str]:
        prefix = f"listener.name.{listener}"
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        plain = login(PLAIN_MODULE, "admin").rstrip(";")
        return {
            f"{prefix}.plain.sasl.jaas.config": f"{plain} {users};",
            **{f"{prefix}.{mechanism.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for mechanism in _SCRAM},
        }

    def _settings(self, properties: Mapping[str, str]) -> dict[str, str]:
        settings = super()._settings(properties)
        ours = ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items())
        protocols = ",".join(f"{name}:{name}" for name in ("PLAINTEXT", *self.ports))
        return {
            **settings,
            "listeners": f"{settings['listeners']},{ours}",
            "advertised.listeners": f"{settings['advertised.listeners']},{ours}",
            "listener.security.protocol.map": f"{protocols},CONTROLLER:SASL_PLAINTEXT",
            **self._secured,
        }
