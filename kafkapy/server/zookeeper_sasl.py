"""Constructs the authentication of ZooKeeper's clients by SASL from the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import ZOOKEEPER_LISTENER_NAME
from kafkapy.config.listener_security import SaslSettings
from kafkapy.errors import ConfigError
from kafkapy.security.jaas import JaasEntry, jaas_file_of, parse_jaas_config, read_jaas_file
from kafkapy.security.sasl.digest_md5_server import DIGEST_MD5, DigestMd5Server, PasswordTable
from kafkapy.zookeeper.server import MakeExchange

JAAS_KEY = f"listener.name.{ZOOKEEPER_LISTENER_NAME.lower()}.{DIGEST_MD5.lower()}.sasl.jaas.config"
# The context of ZooKeeper's server in a JAAS file, and its login module.
_CONTEXT = "Server"
_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
# The names that ZooKeeper's clients expect; none of them is that of a host.
_SERVICE, _REALM = "zookeeper", "zk-sasl-md5"


def make_digest_md5(config: BrokerConfig, environment: Mapping[str, str] = os.environ) -> MakeExchange:
    """Returns a function that creates the server's part of a DIGEST-MD5 exchange, with the users of the JAAS
    configuration. Raises ConfigError, without a password in its text, if there are no users."""
    entries = _jaas_entries(config, environment)
    options: dict[str, str] = {}
    for entry in reversed(entries):  # the first module that has an option counts
        if entry.module == _MODULE:
            options.update(entry.options)
    passwords = PasswordTable(options)
    if not passwords:
        raise ConfigError(
            f"zookeeper.listener.security.protocol={config.zookeeper_listener_security_protocol} needs users: set "
            f'{JAAS_KEY}={_MODULE} required user_NAME="PASSWORD"; or the context {_CONTEXT} of the JAAS file'
        )
    return partial(DigestMd5Server, _SERVICE, _REALM, passwords.find)


def _jaas_entries(config: BrokerConfig, environment: Mapping[str, str]) -> Sequence[JaasEntry]:
    """Returns the login modules for ZooKeeper's clients.

    If the configuration key JAAS_KEY is set, returns the module in its value. Otherwise returns the modules in the JAAS
    file; the list is empty if there is no JAAS file, or if the file has no modules for ZooKeeper. Raises ConfigError
    for a malformed configuration.
    """
    text = SaslSettings(config, ZOOKEEPER_LISTENER_NAME).jaas_config(DIGEST_MD5)
    if text is not None:
        try:
            return [parse_jaas_config(text.value)]
        except ConfigError as error:
            raise ConfigError(f"Invalid value [hidden] for configuration {JAAS_KEY}: {error}") from None
    path = config.kafkapy_jaas_config_file or jaas_file_of(environment)
    return [] if path is None else read_jaas_file(path).get(_CONTEXT, [])
