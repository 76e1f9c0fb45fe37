"""The settings of a console: its clusters, its login, and what users may do."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kafkapy.console.masking import MaskRule
from kafkapy.http.passwords import PasswordFile
from kafkapy.tools.metrics import PageAddress

OAUTH_MECHANISM = "OAUTHBEARER"


class Login(Enum):
    """The ways to log in: the token that is printed at the start, a file of users, or the cluster's credentials."""

    TOKEN = "token"
    FILE = "file"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Settings:
    """The settings of a console. The object does not change after its construction.

    clusters: the properties of a client for each cluster, by the name that the console shows.
    hosts: the names by which browsers may address the console.
    token: the token of Login.TOKEN.
    users: the users of Login.FILE.
    mechanism: the SASL mechanism of Login.CLUSTER.
    allow_changes: whether users may change clusters.
    audit_topic: the topic to which a record is written for each change, and from which pages name who has changed
        something; "" writes and reads none.
    metadata_directory: a log directory of this machine to read the first cluster's metadata log from.
    registries: the address of a schema registry for some of the clusters.
    zookeepers: the connect string of the ZooKeeper with the offsets of old consumers, for some of the clusters.
    metrics: the addresses of the metrics listeners of the brokers, for some of the clusters.
    history_topic: the compacted topic of each cluster in which its history is stored; "" stores none.
    mask_rules: the parts of records that no user sees, by topic.
    jobs_topic: the topic of each cluster from which running Spark jobs are read.
    is_secure: whether the console is served with TLS; if so, browsers send its cookie over TLS only.
    port: the port on which the console listens.
    """

    clusters: Mapping[str, Mapping[str, Any]]
    hosts: frozenset[str]
    login: Login = Login.TOKEN
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    users: PasswordFile | None = None
    mechanism: str = "SCRAM-SHA-512"
    allow_changes: bool = False
    audit_topic: str = ""
    metadata_directory: str | None = None
    registries: Mapping[str, str] = field(default_factory=dict)
    zookeepers: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, tuple[PageAddress, ...]] = field(default_factory=dict)
    history_topic: str = ""
    mask_rules: tuple[MaskRule, ...] = ()
    jobs_topic: str = ""
    is_secure: bool = False
    port: int = 0

    @property
    def cookie(self) -> str:
        """The name of the cookie. The name contains the port, because browsers share cookies between the ports of a
        host."""
        return f"kafkapy-console-{self.port}"
