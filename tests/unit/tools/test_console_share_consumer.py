"""The tool console-share-consumer: which records it acknowledges."""

from __future__ import annotations

import io

import pytest

from kafkapy.client import AcknowledgeType
from kafkapy.tools.console_share_consumer import ConsoleShareConsumer
from kafkapy.tools.message_formatter import make_formatter
from kafkapy.tools.option import ToolError
from tests.unit.tools.simulated_client import Record, numbered

DEFAULT = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
LONGS = {"value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer"}
MIXED = [Record(value, offset=at) for at, value in enumerate((b"12345678", b"short", b"87654321"))]


class SimulatedShareConsumer:
    """A share consumer with one batch of records, which stores the acknowledgements by offset."""

    def __init__(self, records: list[Record]) -> None:
        self._polls = [records]
        self.acknowledged: dict[int, AcknowledgeType] = {}

    def poll(self, timeout: float) -> list[Record]:
        return self._polls.pop(0) if self._polls else []

    def acknowledge(self, record: Record, kind: AcknowledgeType) -> None:
        self.acknowledged[record.offset] = kind


class ClosingPipe(io.BytesIO):
    """An output whose reader ends after the first `count` chunks: it then fails to pass on what was written."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def flush(self) -> None:
        if self._count == 0:
            raise BrokenPipeError
        self._count -= 1


def console(
    consumer: SimulatedShareConsumer, output: io.BytesIO, *, rejects_errors: bool = False, **properties: str
) -> ConsoleShareConsumer:
    formatter = make_formatter(DEFAULT, properties)
    return ConsoleShareConsumer(consumer, formatter, output, AcknowledgeType.ACCEPT, rejects_errors=rejects_errors)


def test_printed_records_are_acknowledged():
    consumer, output = SimulatedShareConsumer(numbered(3)), io.BytesIO()
    console(consumer, output).print_all(2, None)
    assert output.getvalue() == b"0\n1\n"
    assert consumer.acknowledged == dict.fromkeys(range(2), AcknowledgeType.ACCEPT)


def test_records_that_could_not_be_written_are_not_acknowledged():
    consumer = SimulatedShareConsumer(numbered(3))
    with pytest.raises(BrokenPipeError):
        console(consumer, ClosingPipe(0)).print_all(-1, None)
    assert consumer.acknowledged == {}
    consumer = SimulatedShareConsumer([Record(b"x" * 3000, offset=at) for at in range(5)])
    with pytest.raises(BrokenPipeError):
        console(consumer, ClosingPipe(2)).print_all(-1, None)
    assert set(consumer.acknowledged) == {0, 1}


def test_a_record_that_cannot_be_formatted_ends_it_or_is_rejected():
    consumer = SimulatedShareConsumer(MIXED)
    with pytest.raises(ToolError, match="Unknown error when running consumer: Size of data"):
        console(consumer, io.BytesIO(), **LONGS).print_all(-1, None)
    assert consumer.acknowledged == {0: AcknowledgeType.ACCEPT}
    consumer = SimulatedShareConsumer(MIXED)
    console(consumer, io.BytesIO(), rejects_errors=True, **LONGS).print_all(-1, 0)
    accept, reject = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT
    assert consumer.acknowledged == {0: accept, 1: reject, 2: accept}


def test_every_exception_of_a_deserializer_rejects_the_record():
    consumer, name = SimulatedShareConsumer(numbered(2)), "tests.unit.tools.test_console_consumer:decode_or_fail"
    console(consumer, io.BytesIO(), rejects_errors=True, **{"value.deserializer": name}).print_all(-1, 0)
    assert consumer.acknowledged == {0: AcknowledgeType.ACCEPT, 1: AcknowledgeType.REJECT}
