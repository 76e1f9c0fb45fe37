"""The rules of `cordoned.log.dirs`, the log directories that get no new partitions (KIP-1066)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkapy.errors import ConfigError

_EVERY_DIRECTORY = "*"


def is_cordoned(path: str, cordoned: Sequence[str]) -> bool:
    """Returns whether the log directory `path` (absolute) gets no new partitions.

    `cordoned` is the value of cordoned.log.dirs: paths, or `*` for all directories.
    """
    return _EVERY_DIRECTORY in cordoned or path in map(os.path.abspath, cordoned)


def check_cordoned(cordoned: Sequence[str], log_dirs: Sequence[str]) -> None:
    """Raises ConfigError, with Kafka's text, if `cordoned` contains a directory that is not in `log_dirs`.

    The value `*` means all directories, and must be alone.
    """
    if _EVERY_DIRECTORY in cordoned:
        if len(cordoned) > 1:
            raise ConfigError("When cordoned.log.dirs is set to *, it must not contain other values")
        return
    missing = [each for each in cordoned if each not in log_dirs]
    if missing:
        raise ConfigError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
            + ", ".join(missing)
        )
