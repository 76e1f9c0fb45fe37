"""The resource BROKER_LOGGER: levels of this process's loggers, described and changed while it runs (KIP-412)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafkapy.config.describe import ConfigEntry
from kafkapy.config.row import ConfigSource, ConfigType
from kafkapy.controller.configs import ConfigChange, OperationType
from kafkapy.controller.result import SUCCESS, ErrorMessage
from kafkapy.errors import ApiError, Error
from kafkapy.types import TRACE

ROOT = "root"
# Kafka's names of levels -> the nearest levels of Python's logging.
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {level: name for name, level in LEVELS.items()}


def describe_loggers() -> list[ConfigEntry]:
    """Returns every existing logger with its effective level."""
    entries = []
    for name in [ROOT, *sorted(logging.root.manager.loggerDict)]:
        level = _NAMES.get(_logger(name).getEffectiveLevel(), "INFO")
        entries.append(ConfigEntry(name, level, False, ConfigSource.BROKER_LOGGER, False, [], ConfigType.STRING, ""))
    return entries


def alter_logger_levels(changes: Sequence[ConfigChange], *, validate_only: bool) -> ErrorMessage:
    """Sets the levels of loggers, and returns an error, or SUCCESS. The operation DELETE makes a logger inherit its
    level again.

    Sets no level if one of the changes is invalid, or if `validate_only` is True.
    """
    try:
        for change in changes:
            _check(change)
    except ApiError as error:
        return ErrorMessage(error.error, error.message)
    if not validate_only:
        for change in changes:
            deleted = change.operation == OperationType.DELETE
            _logger(change.name).setLevel(logging.NOTSET if deleted else LEVELS[change.value or ""])
    return SUCCESS


def _check(change: ConfigChange) -> None:
    if change.operation not in (OperationType.SET, OperationType.DELETE):
        raise ApiError(
            Error.INVALID_REQUEST, f"operation {change.operation} is not allowed for the BROKER_LOGGER resource"
        )
    if change.name != ROOT and change.name not in logging.root.manager.loggerDict:
        raise ApiError(Error.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == OperationType.DELETE:
        if change.name == ROOT:
            raise ApiError(Error.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif change.value not in LEVELS:
        raise ApiError(
            Error.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
