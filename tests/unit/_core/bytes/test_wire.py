"""Reader and Writer: each type written and read again, limits, tags, chunks."""

import pytest

from kafkapy._core.bytes.wire import EncodeError, Reader, Writer
from kafkapy.errors import ProtocolViolation


def written(*calls):
    writer = Writer(capacity=1)
    for name, *arguments in calls:
        getattr(writer, name)(*arguments)
    return writer.getvalue()


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        ("int8", -2, "fe"),
        ("bool", True, "01"),
        ("bool", False, "00"),
        ("int16", -2, "fffe"),
        ("uint16", 65535, "ffff"),
        ("int32", -(2**31), "80000000"),
        ("int32", -1, "ffffffff"),
        ("uint32", 2**32 - 1, "ffffffff"),
        ("int64", -1, "ffffffffffffffff"),
        ("int64", 2**63 - 1, "7fffffffffffffff"),
        ("float64", 1.5, "3ff8000000000000"),
        ("unsigned_varint", 0, "00"),
        ("unsigned_varint", 127, "7f"),
        ("unsigned_varint", 128, "8001"),
        ("unsigned_varint", 2**32 - 1, "ffffffff0f"),
        ("uuid", bytes(range(16)), bytes(range(16)).hex()),
    ],
)
def test_fixed_types_are_written_and_read(kind, value, data):
    assert written((f"write_{kind}", value)).hex() == data
    reader = Reader(bytes.fromhex(data))
    assert getattr(reader, f"read_{kind}")() == value
    reader.finish()
    for end in range(len(bytes.fromhex(data))):
        with pytest.raises(ProtocolViolation):
            getattr(Reader(bytes.fromhex(data), 0, end), f"read_{kind}")()


@pytest.mark.parametrize(
    ("kind", "value", "compact", "data"),
    [
        ("string", "aä", False, "0003 61c3a4"),
        ("string", "aä", True, "04 61c3a4"),
        ("string", "", True, "01"),
        ("nullable_string", None, False, "ffff"),
        ("nullable_string", None, True, "00"),
        ("bytes", b"\x00\x01", False, "00000002 0001"),
        ("bytes", b"\x00\x01", True, "03 0001"),
        ("nullable_bytes", None, False, "ffffffff"),
        ("nullable_bytes", None, True, "00"),
        ("records", b"\x00\x01", False, "00000002 0001"),
        ("nullable_records", None, True, "00"),
    ],
)
def test_types_with_a_length(kind, value, compact, data):
    data = bytes.fromhex(data)
    assert written((f"write_{kind}", value, compact)) == data
    assert getattr(Reader(data), f"read_{kind}")(compact) == value
    if value is None:
        with pytest.raises(ProtocolViolation, match="null"):
            getattr(Reader(data), f"read_{kind.removeprefix('nullable_')}")(compact)
        with pytest.raises(EncodeError, match="null"):
            written((f"write_{kind.removeprefix('nullable_')}", None, compact))


@pytest.mark.parametrize(
    ("kind", "elements", "data"),
    [
        ("int8", [1, -1], "00000002 01ff"),
        ("int16", [1, -1], "00000002 0001 ffff"),
        ("int32", [1, -1], "00000002 00000001 ffffffff"),
        ("int64", [1], "00000001 0000000000000001"),
        ("uuid", [bytes(16)], "00000001" + "00" * 16),
        ("string", ["a", ""], "00000002 0001 61 0000"),
        ("int32", [], "00000000"),
        ("int32", None, "ffffffff"),
    ],
)
def test_arrays_are_written_and_read(kind, elements, data):
    data = bytes.fromhex(data)
    assert written((f"write_{kind}_array", elements, False, True)) == data
    assert getattr(Reader(data), f"read_{kind}_array")(False, True) == elements
    if elements is None:
        with pytest.raises(ProtocolViolation, match="null"):
            getattr(Reader(data), f"read_{kind}_array")(False, False)
        with pytest.raises(EncodeError, match="null"):
            written((f"write_{kind}_array", None, False, False))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uuid", "string"])
def test_array_count_is_compared_with_what_remains(kind):
    for count in ("7fffffff", "00000010", "fffffffe"):
        with pytest.raises(ProtocolViolation):
            getattr(Reader(bytes.fromhex(count) + bytes(8)), f"read_{kind}_array")(False, True)


@pytest.mark.parametrize("data", ["80" * 10 + "01", "ffffffff1f", "8080808080", "80"])
def test_varint_too_long_or_cut_short(data):
    with pytest.raises(ProtocolViolation):
        Reader(bytes.fromhex(data)).read_unsigned_varint()


def test_string_longer_than_kafka_allows():
    writer = Writer()
    writer.write_string("x" * 32767, True)
    assert Reader(writer.getvalue()).read_string(True) == "x" * 32767
    with pytest.raises(EncodeError):
        writer.write_string("x" * 32768, True)
    with pytest.raises(ProtocolViolation):
        Reader(bytes.fromhex("818002") + b"x" * 32768).read_string(True)


@pytest.mark.parametrize("data", ["c328", "eda080", "ff", "c0af"])
def test_text_that_is_not_utf8(data):
    raw = bytes.fromhex(data)
    with pytest.raises(ProtocolViolation, match="UTF-8"):
        Reader(len(raw).to_bytes(2, "big") + raw).read_string(False)


def test_range_of_a_buffer():
    reader = Reader(b"..\x00\x07..", 2, 4)
    assert (reader.pos, reader.end, reader.remaining) == (2, 4, 2)
    assert reader.read_int16() == 7
    reader.finish()
    for pos, end in ((-1, 3), (3, 2), (0, 7)):
        with pytest.raises(ValueError, match="not within"):
            Reader(b"123456", pos, end)


def test_records_are_a_slice_that_pins_the_buffer():
    buffer = bytearray(bytes.fromhex("00000003 010203 ff"))
    reader = Reader(buffer)
    records = reader.read_records(False)
    assert isinstance(records, memoryview)
    buffer[4] = 9
    assert records == b"\x09\x02\x03"
    del reader
    with pytest.raises(BufferError):
        buffer.append(0)


def test_unknown_tags_are_written_and_read():
    data = bytes.fromhex("02 05 02 aabb 8001 00")
    assert Reader(data).read_unknown_tags() == ((5, b"\xaa\xbb"), (128, b""))
    assert written(("write_unknown_tags", ((5, b"\xaa\xbb"), (128, b"")))) == data
    for end in range(len(data)):
        with pytest.raises(ProtocolViolation):
            Reader(data, 0, end).read_unknown_tags()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 3_000_000])
def test_size_of_a_tagged_field_is_filled_in(size):
    writer = Writer()
    mark = writer.begin_tag(3)
    writer.write_raw(b"x" * size)
    writer.end_tag(mark)
    writer.write_int8(7)
    reader = Reader(writer.getvalue())
    assert reader.read_tag() == 3
    end = reader.read_tag_end()
    assert reader.read_raw(end) == b"x" * size
    reader.finish_tag(end)
    assert reader.read_int8() == 7


def test_tagged_field_of_another_size():
    reader = Reader(bytes.fromhex("02 0001 00"))
    end = reader.read_tag_end()
    reader.read_int8()
    with pytest.raises(ProtocolViolation, match="should end"):
        reader.finish_tag(end)


class FileRange:
    """Imitates a range of a file: it has a length, and returns bytes on demand."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def read(self):
        return self.data


def test_chunks_keep_large_records_and_file_ranges_apart():
    large, small, file_range = memoryview(b"L" * 5000), b"s" * 10, FileRange(b"file")
    writer = Writer()
    writer.write_int8(1)
    writer.write_records(large, False)
    writer.write_records(small, True)
    writer.write_nullable_records(file_range, True)
    writer.write_records(FileRange(b""), False)
    chunks = writer.chunks()
    assert chunks[0] == bytes.fromhex("01 00001388")
    assert chunks[1] is large
    assert chunks[2] == b"\x0b" + small + b"\x05"
    assert chunks[3] is file_range
    assert chunks[4:] == [bytes(4)]
    assert writer.getvalue() == chunks[0] + large.tobytes() + chunks[2] + b"file" + bytes(4)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int8", 128), ("int16", 2**15), ("uint16", -1), ("int32", 2**31), ("int64", 2**63), ("uint32", -1)],
)
def test_number_out_of_range(kind, value):
    with pytest.raises(OverflowError):
        written((f"write_{kind}", value))


def test_uuid_of_another_length():
    with pytest.raises(EncodeError):
        written(("write_uuid", b"short"))
