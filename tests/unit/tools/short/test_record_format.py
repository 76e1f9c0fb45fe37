"""Format strings: what they print, and how input is divided into records by them."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.tools.option import ToolError, UsageError
from kafkapy.tools.short.record_format import RecordFormatter
from kafkapy.tools.short.record_reader import ReadRecord, RecordReader
from tests.unit.tools.simulated_client import Record

RECORD = Record(b"v\xff", b"k", 7, 2, "topic", 1_700_000_000_123, 0, (("a", b"1"), ("b", None)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%v\\n", b"v\xff\n"),
        ("%t[%p]@%o", b"topic[2]@7"),
        ("%T %T{iso}", b"1700000000123 2023-11-14T22:13:20.123Z"),
        ("%K=%k %V=%v", b"1=k 2=v\xff"),
        ("%S %s", b"2 v\xff"),
        ("%k{hex}:%v{base64}", b"6b:dv8="),
        ("%V{big32}%v%o{little16}", b"\0\0\0\2v\xff\7\0"),
        ("%h", b"a=1,b=NULL"),
        ("100%%\\t\\x00\\\\", b"100%\t\0\\"),
        ("grün", "grün".encode()),
    ],
)
def test_a_record_is_printed_by_its_fields(text: str, expected: bytes):
    assert RecordFormatter(text, b"NULL").format(RECORD) == expected


@pytest.mark.parametrize("timestamp", [1_700_000_000_123_000, 253_402_300_800_000, (1 << 63) - 1])
def test_a_time_that_no_date_can_express_is_printed_as_a_number(timestamp: int):
    record = Record(b"v", timestamp=timestamp)
    assert RecordFormatter("%T{iso}").format(record) == b"%d" % timestamp


def test_null_has_a_size_of_its_own():
    formatter = RecordFormatter("%K %k %V{big16}%v", b"-")
    assert formatter.format(Record(None)) == b"-1 - \xff\xff-"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%x", "%x is not a field"),
        ("%v{zip}", r"%v\{zip\} has an unknown modifier"),
        ("%t{hex}", "unknown modifier"),
        ("100% sure", "write %% for a percent sign"),
        ("%", "write %% for a percent sign"),
        ("\\q", r"\\q is not an escape"),
    ],
)
def test_an_invalid_format_is_refused(text: str, message: str):
    with pytest.raises(UsageError, match=message):
        RecordFormatter(text)


def read(text: str, data: bytes, null: bytes | None = None) -> list[ReadRecord]:
    return list(RecordReader(text, null).read(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        ("%v\\n", b"one\n\ntwo", [(None, b"one"), (None, b""), (None, b"two")]),
        ("%k=%v\\n", b"a=1=2\nb=\n", [(b"a", b"1=2"), (b"b", b"")]),
        ("%k{hex} %v{base64};", b"00ff dg==;01 ;", [(b"\0\xff", b"v"), (b"\1", b"")]),
        ("%K{big16}%k%V{little32}%v", b"\0\1k\2\0\0\0vw\xff\xff\0\0\0\0", [(b"k", b"vw"), (None, b"")]),
        ("%V %v", b"3 a\nb2 cd", [(None, b"a\nb"), (None, b"cd")]),
        ("<%v>", b"<a><b>", [(None, b"a"), (None, b"b")]),
        ("%v", b"the\nwhole", [(None, b"the\nwhole")]),
        ("%v\\n", b"", []),
    ],
)
def test_input_is_divided_into_records(text: str, data: bytes, expected: list[tuple[bytes | None, bytes]]):
    assert [(each.key, each.value) for each in read(text, data)] == expected


def test_all_fields_are_read():
    (found,) = read("%t %p %T %h %v\\n", b"prices 3 1700000000000 a=1,b=- -\n", b"-")
    assert found == ReadRecord(None, None, (("a", b"1"), ("b", None)), 3, 1_700_000_000_000, "prices")


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        ("%k=%v\\n", b"a=1\nb\n", "record 2 of the input does not match the format: b'=' is missing"),
        ("%v{hex}\\n", b"0g\n", "record 1 .* b'0g' is not hex"),
        ("%v{base64}\\n", b"?\n", "is not base64"),
        ("%V{big32}%v", b"\0\0\0\5abc", "the input ends within a field"),
        ("%V{big32}%v", b"\xff\xff\xff\xfe", "-2 is not a size in bytes, or -1 for null"),
        ("<%v>", b"<a>b>", "b'<' is missing"),
        ("%p %v\\n", b"x y\n", "b'x' is not a number for %p"),
    ],
)
def test_input_that_does_not_match_is_named(text: str, data: bytes, message: str):
    with pytest.raises(ToolError, match=message):
        read(text, data)


@pytest.mark.parametrize("text", ["%k%v\\n", "no field", "%T{iso} %v\\n"])
def test_a_format_by_which_input_cannot_be_divided_is_refused(text: str):
    with pytest.raises(UsageError):
        RecordReader(text)


class Pieces(io.RawIOBase):
    """A stream that returns one byte per read."""

    def __init__(self, data: bytes) -> None:
        self._data = list(data)

    def read1(self, size: int) -> bytes:
        return bytes([self._data.pop(0)]) if self._data else b""


content = st.none() | st.binary(max_size=40)


@given(
    st.lists(st.tuples(content, content), max_size=8), st.sampled_from(["big32", "little64", "big16"]), st.booleans()
)
def test_records_with_sizes_are_read_as_they_were_printed(pairs, size: str, in_pieces: bool):
    text = f"%K{{{size}}}%k%V{{{size}}}%v"
    data = b"".join(RecordFormatter(text).format(Record(value, key)) for key, value in pairs)
    stream = Pieces(data) if in_pieces else io.BytesIO(data)
    assert [(each.key, each.value) for each in RecordReader(text).read(stream)] == pairs


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40)), max_size=8))
def test_encoded_records_are_read_as_they_were_printed(pairs):
    text = "%k{hex} %v{base64}\\n"
    data = b"".join(RecordFormatter(text).format(Record(value, key)) for key, value in pairs)
    assert [(each.key, each.value) for each in RecordReader(text).read(Pieces(data))] == pairs
