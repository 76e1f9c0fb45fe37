"""The security of a broker of the benchmark: TLS 1.3 with one cipher, a user with SCRAM-SHA-256, and ACLs.

A secured broker has a second listener for the loads. Its first one, PLAINTEXT, stays for administration.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kafkapy.client.admin import (
    AccessControlEntry,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    NewScramCredential,
    ScramMechanism,
)
from tests.harness.certificates import CertificateAuthority, Identity

USER, PASSWORD = "bench", "secret-of-the-bench"
ANONYMOUS = "User:ANONYMOUS"
CIPHER = "TLS_AES_256_GCM_SHA384"
# The names of all topics of the benchmark begin with it.
TOPICS = "bench-"
MECHANISM = "SCRAM-SHA-256"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Security(NamedTuple):
    """The protocol of the listener for the loads, and whether an authorizer decides about each request.

    With PLAINTEXT the loads use the only listener, as the user ANONYMOUS.
    """

    protocol: str = "PLAINTEXT"
    has_acls: bool = False

    @property
    def has_listener(self) -> bool:
        return self.protocol != "PLAINTEXT"

    @property
    def has_users(self) -> bool:
        return self.protocol.startswith("SASL")

    def properties(self, directory: Path) -> dict[str, str]:
        """Returns the broker's keys, except for those of its listeners; writes its certificate into `directory`."""
        found: dict[str, str] = {}
        if self.protocol.endswith("SSL"):
            identity = certificate(directory)
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(identity.pem_file),
                "ssl.enabled.protocols": "TLSv1.3",
                "ssl.protocol": "TLSv1.3",
                "ssl.cipher.suites": CIPHER,
            }
        if self.has_users:
            prefix = f"listener.name.{self.protocol.lower()}"
            found |= {
                "sasl.enabled.mechanisms": MECHANISM,
                f"{prefix}.{MECHANISM.lower()}.sasl.jaas.config": LOGIN_MODULE,
            }
        if self.has_acls:
            found["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            # A user has the permissions of its ACLs only. Without users, only topics have ACLs.
            found |= {"super.users": ANONYMOUS} if self.has_users else {"allow.everyone.if.no.acl.found": "true"}
        return found

    def client_settings(self, directory: Path) -> tuple[str, ...]:
        """Returns the settings of the load programs, which are librdkafka's."""
        if not self.has_listener:
            return ()
        found = [f"security.protocol={self.protocol}"]
        if self.protocol.endswith("SSL"):
            found += [f"ssl.ca.location={directory / 'ca.crt'}"]
        if self.has_users:
            found += [f"sasl.mechanism={MECHANISM}", f"sasl.username={USER}", f"sasl.password={PASSWORD}"]
        return tuple(found)

    def create(self, bootstrap: str) -> None:
        """Creates the user and the ACLs of a running broker."""
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            if self.has_users:
                user = NewScramCredential(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD)
                admin.alter_user_scram_credentials([user]).check()
            if self.has_acls:
                principal = f"User:{USER}" if self.has_users else ANONYMOUS
                entry = AccessControlEntry(
                    AclResourceType.TOPIC,
                    TOPICS,
                    AclPatternType.PREFIXED,
                    principal,
                    "*",
                    AclOperation.ALL,
                    AclPermission.ALLOW,
                )
                admin.create_acls([entry]).check()


PLAIN = Security()


def certificate(directory: Path) -> Identity:
    """Returns a new certificate for loopback with a P-256 key, signed by the authority ca.crt in `directory`."""
    return CertificateAuthority(directory).issue("broker")


def certificate_files(directory: Path) -> tuple[str, str]:
    """Returns the paths of the broker's certificate and key, which `certificate` has written into `directory`."""
    return str(directory / "broker.crt"), str(directory / "broker.key")
