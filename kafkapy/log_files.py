"""Separate log files of some loggers, with the names in Apache Kafka's log4j2.yaml."""

from __future__ import annotations

import logging
import os

# The file -> the loggers that write to it instead of the broker's log.
LOG_FILES = {
    "controller.log": ("kafka.controller",),
    "state-change.log": ("state.change.logger",),
    "log-cleaner.log": ("kafka.log.LogCleaner", "kafka.log.LogCleanerManager"),
    "kafka-authorizer.log": ("kafka.authorizer.logger",),
    "kafka-request.log": ("kafka.request.logger",),
}


def open_log_files(directory: str, formatter: logging.Formatter) -> None:
    """Makes the loggers named in `LOG_FILES` write only to their files in `directory`; the files are appended to.

    A file that logrotate has moved is opened again. Raises OSError if a file cannot be opened.
    """
    from logging.handlers import WatchedFileHandler  # needed only with the configuration key

    for name, loggers in LOG_FILES.items():
        handler = WatchedFileHandler(os.path.join(directory, name), encoding="utf-8")
        handler.setFormatter(formatter)
        for each in loggers:
            logger = logging.getLogger(each)
            logger.propagate = False
            logger.addHandler(handler)
