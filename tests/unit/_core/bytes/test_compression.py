"""Codecs: the encodings of Kafka's clients, read whole and in pieces, with a limit."""

import gzip

import cramjam
import lz4.frame
import pytest
import zstandard

from kafkapy._core.bytes.compression import (
    CHUNK_BYTES,
    DecompressedTooLargeError,
    DecompressionError,
    compress,
    decompress,
    decompress_chunks,
    largest_decompressed_size,
)

TEXT = b"some text that repeats, " * 9000


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("length", [0, 1, 32768, CHUNK_BYTES, CHUNK_BYTES + 1, len(TEXT)])
def test_round_trip_in_bounded_chunks(codec, length):
    data = compress(codec, memoryview(TEXT)[:length])
    chunks = list(decompress_chunks(codec, bytearray(data)))
    assert b"".join(chunks) == TEXT[:length] == decompress(codec, data, length)
    assert all(0 < len(chunk) <= CHUNK_BYTES for chunk in chunks)


@pytest.mark.parametrize(("codec", "levels"), [(1, (1, 9)), (3, (1, 9, 12)), (4, (1, 19, -5))])
def test_every_level_can_be_decompressed(codec, levels):
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


def test_formats_are_the_ones_others_read():
    assert gzip.decompress(compress(1, TEXT)) == TEXT
    assert compress(2, b"abc")[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    assert lz4.frame.get_frame_info(compress(3, TEXT)) == lz4.frame.get_frame_info(compress(3, b"")) | {
        "skippable": False
    }
    info = lz4.frame.get_frame_info(compress(3, TEXT))
    assert (info["block_size"], info["block_linked"], info["content_checksum"]) == (65536, False, False)
    assert zstandard.ZstdDecompressor().decompress(compress(4, TEXT)) == TEXT


def test_reads_what_others_write():
    assert decompress(2, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT
    independent = lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True, block_linked=False)
    assert decompress(3, independent, len(TEXT)) == TEXT
    stream = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    assert decompress(4, stream.compress(TEXT), len(TEXT)) == TEXT
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0xyz"
    assert decompress(4, skippable + compress(4, TEXT), len(TEXT)) == TEXT


def test_many_small_blocks_of_snappy_are_read_together():
    """A batch of a megabyte may have 200,000 blocks, each of which Python code would need a microsecond or more for."""
    header = compress(2, b"")
    blocks = [bytes(cramjam.snappy.compress_raw(TEXT[start : start + 3])) for start in range(0, len(TEXT), 3)]
    framed = [len(block).to_bytes(4, "big") + block for block in blocks]
    empty = b"\0\0\0\1\0"
    data = header + empty * 1000 + b"".join(framed[:1000]) + header + empty + b"".join(framed[1000:])
    chunks = list(decompress_chunks(2, data))
    assert b"".join(chunks) == TEXT
    assert len(chunks) <= 2 * len(TEXT) / CHUNK_BYTES + 1
    assert largest_decompressed_size(2, data) == len(TEXT)
    assert decompress(2, header + empty * 1000, 0) == b""
    large = compress(2, TEXT)[len(header) :]  # blocks of 32 KiB
    mixed = decompress(2, header + framed[0] + large + framed[1] + large, 3 * len(TEXT))
    assert mixed == TEXT[:3] + TEXT + TEXT[3:6] + TEXT
    for damaged in (data[:-1], data + b"\0\0\0\2\5", data + b"\0\0\0\2\1\xff", data + b"\xff\0\0\0"):
        with pytest.raises(DecompressionError):
            decompress(2, damaged, len(TEXT))


def test_lz4_with_dependent_blocks_is_refused_as_kafka_does():
    """No consumer in Java can read this frame, although some lz4 libraries write no other."""
    several_blocks = TEXT * (1 + 2 * 65536 // len(TEXT))
    dependent = lz4.frame.compress(several_blocks, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=True)
    assert lz4.frame.decompress(dependent) == several_blocks
    with pytest.raises(DecompressionError, match="dependent"):
        decompress(3, dependent, len(several_blocks))


@pytest.mark.parametrize("codec", range(1, 5))
def test_output_beyond_the_limit_and_cut_input_are_refused(codec):
    data = compress(codec, TEXT)
    with pytest.raises(DecompressedTooLargeError):
        decompress(codec, data, len(TEXT) - 1)
    for end in range(1, len(data), 7):
        if codec == 2 and end == 16:
            continue  # a header without blocks is an empty stream
        with pytest.raises(DecompressionError):
            decompress(codec, data[:end], len(TEXT))


def test_an_unknown_codec_is_refused():
    with pytest.raises(ValueError, match="codec 5"):
        compress(5, b"")
    with pytest.raises(ValueError, match="codec 9"):
        decompress(9, b"", 1)


def test_a_window_beyond_128_mebibytes_is_refused():
    parameters = zstandard.ZstdCompressionParameters(window_log=28)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = writer.compress(TEXT) + writer.flush()
    with pytest.raises(DecompressionError, match="zstd"):
        decompress(4, data, len(TEXT))
