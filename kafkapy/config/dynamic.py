"""Validation of broker keys that are changed while the broker runs (KIP-226)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkapy.config.keys.security import RECONFIGURABLE_KEYS
from kafkapy.config.row import PER_BROKER, READ_ONLY, Row
from kafkapy.config.table import BROKER_ROWS, DYNAMIC_ONLY_ROWS
from kafkapy.config.value import parse_value
from kafkapy.errors import ApiError, ConfigError, Error


def dynamic_row(name: str) -> Row | None:
    """Returns the row of a broker key; None for an unknown name.

    The name may have the prefix `listener.name.<listener>.`.
    """
    plain = name
    if name.startswith("listener.name."):
        plain = name.removeprefix("listener.name.").partition(".")[2]
    return BROKER_ROWS.get(plain) or DYNAMIC_ONLY_ROWS.get(plain)


def validate_broker_overrides(overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Raises ApiError(INVALID_REQUEST), in Kafka's wording, for a key that cannot be changed or has an invalid value.

    If `per_broker`, the change is for one broker, otherwise for all brokers. Unknown names are accepted, as in Kafka.
    """
    rows = {name: dynamic_row(name) for name in overrides}
    fixed = [name for name, row in rows.items() if row is not None and row.mode is READ_ONLY]
    if fixed:
        raise ApiError(Error.INVALID_REQUEST, f"Cannot update these configs dynamically: {_shown(fixed)}")
    unprefixed = [name for name in overrides if name in RECONFIGURABLE_KEYS]
    if unprefixed:
        raise ApiError(
            Error.INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            + _shown(unprefixed),
        )
    if not per_broker:
        single = [
            name for name, row in rows.items() if row is not None and (row.mode is PER_BROKER or row.name != name)
        ]
        if single:
            raise ApiError(
                Error.INVALID_REQUEST,
                "Cannot update these configs at default cluster level, broker id must be specified: " + _shown(single),
            )
    for name, row in rows.items():
        if row is None:
            continue
        try:
            parse_value(row, overrides[name])
        except ConfigError as error:
            raise ApiError(Error.INVALID_REQUEST, str(error)) from error


def _shown(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
