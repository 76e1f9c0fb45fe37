"""Codecs over 1 MB that compresses about four times."""

import random

import pytest

from kafkapy._core.bytes.compression import CODEC_NAMES, compress, decompress, decompress_chunks

WORDS = [bytes(random.Random(seed).choices(b"abcdefghij", k=8)) for seed in range(200)]
DATA = b" ".join(random.Random(1).choices(WORDS, k=120_000))
CODECS = pytest.mark.parametrize("codec", range(1, 5), ids=CODEC_NAMES[1:])


@CODECS
def test_compress(benchmark, codec):
    benchmark(compress, codec, DATA)


@CODECS
def test_decompress(benchmark, codec):
    benchmark(decompress, codec, compress(codec, DATA), len(DATA))


@CODECS
def test_decompress_chunks(benchmark, codec):
    data = compress(codec, DATA)
    benchmark(lambda: sum(len(chunk) for chunk in decompress_chunks(codec, data)))
