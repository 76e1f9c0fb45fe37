"""Constructs the server's side of the SASL mechanisms that a listener enables, from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from kafkapy.config.listener_security import CALLBACK_KEY, SaslSettings
from kafkapy.config.python_class import load_class_of_key
from kafkapy.errors import ConfigError
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NAME, ScramMechanism
from kafkapy.security.jaas import JaasEntry, check_allowed, parse_jaas_config
from kafkapy.security.sasl.plain_server import PlainServer, UserTable
from kafkapy.security.sasl.scram_formulas import ScramKeys
from kafkapy.security.sasl.scram_server import FindIdentity, ScramIdentity, ScramServer, user_principal
from kafkapy.security.sasl.server_mechanism import ServerMechanism

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SERVER_CONTEXT = "KafkaServer"
SUPPORTED = (PLAIN, *MECHANISMS_BY_NAME, OAUTHBEARER, GSSAPI)

# The login contexts of the JAAS file by name.
JaasContexts = Mapping[str, Sequence[JaasEntry]]


class MechanismMaker(NamedTuple):
    """Constructs the exchanges of one mechanism.

    `blocks` is True if the steps of an exchange may wait. They must then not run on the thread that serves all
    connections (the reactor).
    """

    make: Callable[[], ServerMechanism]
    blocks: bool = False


class CredentialStore(Protocol):
    """The credentials in the cluster's metadata. Any thread may use the object."""

    def find_user(self, mechanism: ScramMechanism, name: str) -> ScramIdentity | None:
        """Returns the SCRAM credential of a user; None if there is none."""
        ...

    def find_token(self, mechanism: ScramMechanism, token_id: str) -> ScramIdentity | None:
        """Returns the keys and the owner of a delegation token; None if there is none."""
        ...


def make_mechanisms(
    settings: SaslSettings, store: CredentialStore, jaas_file: JaasContexts | None, wall_ms: Callable[[], int]
) -> dict[str, MechanismMaker]:
    """Returns the makers of the mechanisms that the listener enables, in the configured order.

    `wall_ms` returns the time that decides whether a token has expired. Raises ConfigError for a mechanism that is not
    supported, or whose configuration is incomplete.
    """
    unknown = [name for name in settings.mechanisms if name not in SUPPORTED]
    if unknown:
        raise ConfigError(
            f"Invalid value {','.join(settings.mechanisms)} for configuration sasl.enabled.mechanisms of listener "
            f"{settings.listener_name}: the mechanism {unknown[0]} is not served; served are {', '.join(SUPPORTED)}"
        )
    made = {}
    for name in settings.mechanisms:
        if name == OAUTHBEARER:
            from kafkapy.security.sasl.oauth_factory import make_oauth

            entries = jaas_entries(name, settings, jaas_file) if has_jaas_entries(name, settings, jaas_file) else ()
            made[name] = MechanismMaker(make_oauth(settings, entries, wall_ms), blocks=True)
        elif name == GSSAPI:
            made[name] = _make_gssapi(settings, _options(name, settings, jaas_file, KERBEROS_MODULE))
        else:
            made[name] = _make(name, settings, store, jaas_file)
    return made


def _make(name: str, settings: SaslSettings, store: CredentialStore, jaas_file: JaasContexts | None) -> MechanismMaker:
    if settings.value(name, CALLBACK_KEY):
        return _make_with_class(name, settings, jaas_file)
    if name == PLAIN:
        users = UserTable(_options(name, settings, jaas_file, PLAIN_MODULE))
        return MechanismMaker(partial(PlainServer, users.check_password))
    mechanism = MECHANISMS_BY_NAME[name]
    find_user: FindIdentity = partial(store.find_user, mechanism)
    find_token: FindIdentity = partial(store.find_token, mechanism)
    return MechanismMaker(partial(ScramServer, mechanism, find_user, find_token))


def _make_gssapi(settings: SaslSettings, options: Mapping[str, str]) -> MechanismMaker:
    """Returns the maker of GSSAPI for the `principal` and `keyTab` of the JAAS entry."""
    from kafkapy.security.gssapi_library import AcceptorCredential, GssError, default_realm
    from kafkapy.security.kerberos_names import ShortNames
    from kafkapy.security.sasl.gssapi_server import GssapiServer

    names = ShortNames(settings.value(GSSAPI, "sasl.kerberos.principal.to.local.rules"), default_realm())
    principal, keytab = options.get("principal"), options.get("keyTab")
    try:
        credential = AcceptorCredential(principal, keytab)
    except GssError as error:
        raise ConfigError(
            f"listener {settings.listener_name}: GSSAPI cannot use the keys of the principal {principal or '(any)'} in "
            f"the keytab {keytab or '(the default one)'}: {error}"
        ) from error
    return MechanismMaker(partial(GssapiServer, credential.accept, names), blocks=True)


def _make_with_class(name: str, settings: SaslSettings, jaas_file: JaasContexts | None) -> MechanismMaker:
    """Returns the maker of a mechanism whose credentials the administrator's Python class checks or supplies.

    The class may have `configure(mechanism, listener_name, options)`, which receives the options of the JAAS entry. For
    PLAIN it has `authenticate(name, password) -> bool`; for SCRAM `credential(name)`, which returns (salt, stored key,
    server key, iterations), or None for an unknown user. The methods may block.
    """
    class_name: str = settings.value(name, CALLBACK_KEY)
    handler: Any = load_class_of_key(CALLBACK_KEY, class_name, "check credentials")()
    if hasattr(handler, "configure"):
        handler.configure(name, settings.listener_name, _options(name, settings, jaas_file, None))
    if name == PLAIN:
        return MechanismMaker(partial(PlainServer, handler.authenticate), blocks=True)

    def find_user(user: str) -> ScramIdentity | None:
        keys = handler.credential(user)
        return None if keys is None else ScramIdentity(ScramKeys(*keys), user_principal(user))

    return MechanismMaker(partial(ScramServer, MECHANISMS_BY_NAME[name], find_user), blocks=True)


def _options(name: str, settings: SaslSettings, jaas_file: JaasContexts | None, module: str | None) -> dict[str, str]:
    """Returns the options of the login module `module`, or of all modules if it is None, in the listener's JAAS
    configuration of the mechanism `name`.

    If several modules have an option, the value in the first of them is used. Raises ConfigError if there is no module
    to read.
    """
    entries = jaas_entries(name, settings, jaas_file)
    chosen = [entry for entry in entries if module in (None, entry.module)]
    if not chosen:
        raise ConfigError(
            f"The JAAS configuration of listener {settings.listener_name} has no login module {module}, which the "
            f"mechanism {name} needs; it has {', '.join(entry.module for entry in entries)}"
        )
    options: dict[str, str] = {}
    for entry in reversed(chosen):  # the first module that has an option counts
        options.update(entry.options)
    return options


def jaas_entries(name: str, settings: SaslSettings, jaas_file: JaasContexts | None) -> Sequence[JaasEntry]:
    """Returns the listener's login modules of the mechanism `name`. Raises ConfigError if there are none.

    They come from `listener.name.<listener>.<mechanism>.sasl.jaas.config`, otherwise from the context
    `<listener>.KafkaServer` of the JAAS file, otherwise from its context `KafkaServer`.
    """
    text = settings.jaas_config(name)
    key = f"listener.name.{settings.listener_name.lower()}.{name.lower()}.sasl.jaas.config"
    if text is not None:
        try:
            return [parse_jaas_config(text.value)]
        except ConfigError as error:
            raise ConfigError(f"Invalid value [hidden] for configuration {key}: {error}") from None
    contexts = _contexts(settings)
    for context in contexts:
        entries = (jaas_file or {}).get(context)
        if entries is not None:
            for entry in entries:
                check_allowed(entry)
            return entries
    place = "there is no JAAS file" if jaas_file is None else "it has other contexts only"
    raise ConfigError(
        f"Could not find a '{contexts[1]}' or '{contexts[0]}' entry in the JAAS configuration ({place}), and {key} is "
        "not set"
    )


def has_jaas_entries(name: str, settings: SaslSettings, jaas_file: JaasContexts | None) -> bool:
    """Returns whether the listener has a JAAS configuration of the mechanism `name`; OAUTHBEARER does not need one."""
    return settings.jaas_config(name) is not None or any(each in (jaas_file or {}) for each in _contexts(settings))


def _contexts(settings: SaslSettings) -> tuple[str, str]:
    """Returns the names of the login contexts of a listener in a JAAS file, in the order in which they are tried. The
    first context that exists is used."""
    return f"{settings.listener_name.lower()}.{SERVER_CONTEXT}", SERVER_CONTEXT
