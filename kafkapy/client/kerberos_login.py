"""The client's credentials for GSSAPI: a keytab (a file with keys), or the tickets that `kinit` has stored."""

from __future__ import annotations

import itertools
import os
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kafkapy.errors import ConfigError
from kafkapy.host_names import host_addresses
from kafkapy.security.gssapi_library import GssError, InitiatorCredential
from kafkapy.security.sasl.gssapi_client import GssapiClient

if TYPE_CHECKING:
    from kafkapy.client.security_values import SecurityValues
    from kafkapy.security.jaas import JaasEntry

_SERVICE_KEY = "sasl.kerberos.service.name"
_numbers = itertools.count()


class KerberosLogin:
    """The principal of one client, as the options of Java's Krb5LoginModule name it. Thread-safe.

    With `keyTab` the Kerberos library requests tickets with the keys in that file, and new ones before they expire.
    Without `keyTab` the tickets in the cache `ticketCache`, or in the default cache, are used.
    """

    def __init__(self, values: SecurityValues, entry: JaasEntry) -> None:
        """Reads the options. Raises ConfigError if the service's name is missing, or the principal has neither keys nor
        tickets.
        """
        service = entry.options.get("serviceName") or values[_SERVICE_KEY]
        if not service:
            raise ConfigError(f"{_SERVICE_KEY} is missing: the mechanism GSSAPI needs the name of the brokers' service")
        self._service: str = service
        self._principal = entry.options.get("principal")
        self._keytab = entry.options.get("keyTab")
        if entry.options.get("useKeyTab", "").lower() != "true":
            self._keytab = None
        self._cache = entry.options.get("ticketCache")
        if self._keytab is not None and self._cache is None:
            # The client has a cache of its own, because other clients of the process may have other principals.
            self._cache = f"MEMORY:kafkapy-{os.getpid()}-{next(_numbers)}"
        try:
            self._credential()
        except GssError as error:
            source = f"the keytab {self._keytab}" if self._keytab else f"the cache {self._cache or '(default)'}"
            raise ConfigError(
                f"sasl.jaas.config: GSSAPI has no credentials of {self._principal or 'any principal'} in {source}: "
                f"{error}"
            ) from error

    def _credential(self) -> InitiatorCredential:
        return InitiatorCredential(self._principal, self._keytab, self._cache)

    def mechanism(self, host: str) -> GssapiClient:
        """Returns the client's part of the mechanism GSSAPI for one authentication with a broker at `host`."""
        # A new credential makes the library renew tickets that are about to expire.
        return GssapiClient(self._credential().initiate(self._service, host_name(host)))

    def close(self) -> None:
        """Does nothing: the tickets are in memory, or in a cache that this client does not own."""


def host_name(host: str) -> str:
    """Returns the host name for the broker's Kerberos principal. May block for the name resolver.

    `host` is a host name, which is returned unchanged, or an IP address, for which the resolver's name is returned. As
    in Java's client, the address is returned unchanged if the name does not resolve to this address again.
    """
    try:
        address = ip_address(host)
        name = socket.gethostbyaddr(host)[0]
        found = {ip_address(each[4][0]) for each in host_addresses(name)}
    except (ValueError, OSError):
        return host
    return name if address in found else host
