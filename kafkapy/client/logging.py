"""A handler for Python's logging that writes log records to a topic, and never blocks the program."""

from __future__ import annotations

import json
import logging
import socket
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kafkapy.client.reliable.records import Output, RecordHeaders
from kafkapy.client.reliable.side_channel import (
    DEFAULT_MOST_BYTES,
    DEFAULT_MOST_RECORDS,
    Sender,
    SideChannel,
    channel_producer,
)
from kafkapy.errors import ConfigError

_FORMATS = ("json", "pattern")
# The client's own messages would cause further messages.
_OWN_LOGGERS = "kafkapy.client"


class KafkaHandler(logging.Handler):
    """A logging handler with a topic. Thread-safe.

        handler = KafkaHandler("app-logs", bootstrap_servers="localhost:9092", level=logging.ERROR)
        logging.getLogger().addHandler(handler)

    A log record is added to a queue of at most `most_records` and `most_bytes`; a thread sends it. If the queue is full
    or the brokers refuse the record, it is dropped: `dropped` counts these records. The records that did not fit into
    the queue are passed to `fallback`, another handler. Messages of kafkapy's client itself are ignored.

    record_format: "json" for an object with time, level, logger, message, host, process, thread, and the traceback and
        the `extra` fields if there are any; "pattern" for the text of the handler's formatter.
    key: the field of the JSON object that is the record's key, such as "host"; None for no key.
    trace_id: a function that returns the value of the header `traceparent` (W3C Trace Context) for the present request;
        None if the record gets no such header.
    """

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, Any] | None = None,
        *,
        level: int | str = logging.NOTSET,
        record_format: str = "json",
        key: str | None = None,
        most_records: int = DEFAULT_MOST_RECORDS,
        most_bytes: int = DEFAULT_MOST_BYTES,
        fallback: logging.Handler | None = None,
        trace_id: Callable[[], str | None] | None = None,
        make_producer: Callable[[], Sender] | None = None,
        **settings: Any,
    ) -> None:
        """Makes the handler's empty queue; the first log record starts a thread, and the brokers are not contacted
        before.

        `properties` and `settings` are the configuration of the producer. `make_producer()` returns the producer to use
        instead, for tests. Raises ConfigError for an unknown `record_format`.
        """
        super().__init__(level)
        if record_format not in _FORMATS:
            raise ConfigError(f"{record_format} is not a format of log records: {' and '.join(_FORMATS)} are")
        self._topic = topic
        self._is_json = record_format == "json"
        self._key = key
        self._fallback = fallback
        self._trace_id = trace_id
        self._host = socket.gethostname()
        merged = {**(properties or {}), **{name.replace("_", "."): value for name, value in settings.items()}}
        self._channel = SideChannel(
            make_producer or channel_producer(merged),
            most_records=most_records,
            most_bytes=most_bytes,
            thread_name="kafkapy-log-handler",
        )

    @property
    def dropped(self) -> int:
        """The number of log records that were not written to the topic."""
        return self._channel.dropped

    @property
    def sent(self) -> int:
        """The number of log records that the brokers have acknowledged."""
        return self._channel.sent

    def emit(self, record: logging.LogRecord) -> None:
        """Adds a log record to the queue; does not block and does not raise."""
        if record.name == _OWN_LOGGERS or record.name.startswith(_OWN_LOGGERS + "."):
            return
        try:
            fields = self._fields(record)
            text = json.dumps(fields, default=str, ensure_ascii=False) if self._is_json else self.format(record)
            headers: RecordHeaders = (("level", record.levelname.encode()),)
            parent = self._trace_id() if self._trace_id is not None else None
            if parent is not None:
                headers = (*headers, ("traceparent", parent.encode()))
            key = None if self._key is None else str(fields.get(self._key, "")).encode("utf-8", "replace")
            is_queued = self._channel.put(Output(self._topic, text.encode("utf-8", "replace"), key, headers))
            if not is_queued and self._fallback is not None:
                self._fallback.handle(record)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Waits up to five seconds until all log records are written."""
        self._channel.flush(5.0)

    def close(self) -> None:
        """Writes what is in the queue, for five seconds at most, and ends the thread."""
        self._channel.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "host": self._host,
            "process": record.process,
            "thread": record.threadName,
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        fields.update({name: value for name, value in vars(record).items() if name not in _PLAIN_ATTRIBUTES})
        return fields


# The attributes that every log record has; all others come from `extra`.
_PLAIN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
