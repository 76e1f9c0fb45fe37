"""The addresses of the brokers' metrics listeners, according to the console's option --metrics."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafkapy.client.configuration import security_values
from kafkapy.client.security_values import tls_context
from kafkapy.config.properties import read_properties
from kafkapy.errors import ConfigError
from kafkapy.tools.metrics import LISTENER_KEY, PASSWORD_KEY, USER_KEY, PageAddress, address_in_file

URLS_KEY = "kafkapy.metrics.urls"


def addresses_of(place: str) -> tuple[PageAddress, ...]:
    """Returns the addresses that `place` names: URLs separated by commas, or a file.

    The file is the configuration file of a broker with a metrics listener, or a file of properties. The properties are
    `kafkapy.metrics.urls`, `kafkapy.metrics.username`, `kafkapy.metrics.password` and, for https, the keys `ssl.*` of a
    client. Raises ConfigError or ToolError.
    """
    if not Path(place).is_file():
        return tuple(_address(each.strip()) for each in place.split(","))
    properties = read_properties(place)
    if properties.get(LISTENER_KEY):
        return (address_in_file(place),)
    urls = properties.get(URLS_KEY, "")
    if not urls:
        raise ConfigError(f"{place} sets neither {URLS_KEY} nor {LISTENER_KEY}")
    user, password = properties.get(USER_KEY, ""), properties.get(PASSWORD_KEY, "")
    found = [_address(each.strip()) for each in urls.split(",")]
    tls = tls_context(security_values(properties)) if any(each.url.startswith("https:") for each in found) else None
    return tuple(each._replace(tls=tls, user=each.user or user, password=each.password or password) for each in found)


def _address(url: str) -> PageAddress:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError for a port that is not a number
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/", "/metrics"):
        raise ConfigError(
            f"{url.rpartition('@')[2][:100]!r} is not the address of a metrics listener, such as http://localhost:9404"
        )
    return PageAddress(url, None, unquote(parts.username or ""), unquote(parts.password or ""))
