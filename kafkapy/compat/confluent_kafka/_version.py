"""The versions of confluent-kafka and librdkafka whose API this package has."""

from __future__ import annotations

__version__ = "2.16.1"
_LIBRDKAFKA = "2.16.0"


def _hexadecimal(text: str) -> int:
    """Returns a version as librdkafka's integer: "1.2.3" is 0x010203ff, where the last byte, ff, means a release."""
    major, minor, patch = (int(part) for part in text.split("."))
    return major << 24 | minor << 16 | patch << 8 | 0xFF


def version() -> str:
    """Returns the version of confluent-kafka whose API this package has."""
    return __version__


def libversion() -> tuple[str, int]:
    """Returns the version of librdkafka whose configuration keys this package has, as text and as a number."""
    return _LIBRDKAFKA, _hexadecimal(_LIBRDKAFKA)
