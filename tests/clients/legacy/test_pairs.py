"""Every client reads what every other client writes, from 0.8 to 4.3.

By default a sample of the pairs is tested, with few records. KAFKAPY_LEGACY_PAIRS=WRITER tests one writer with every
reader and every codec that both support, as tests/full does.
"""

from __future__ import annotations

import os

import pytest

from tests.clients.legacy.carriage import Carriage
from tests.clients.legacy.catalog import BY_NAME, TRIED_CLIENTS, TriedClient

NEWEST = "java-4.3.0"
Pair = tuple[str, str, str]


def _reader_of(place: int, codec: str) -> TriedClient:
    """Returns a reader for the client at `place` that supports the codec; it differs from codec to codec."""
    circle = [tried for tried in TRIED_CLIENTS if codec in tried.codecs]
    return circle[(place + 5 * TRIED_CLIENTS[place].codecs.index(codec)) % len(circle)]


def sampled_pairs() -> list[Pair]:
    """Returns pairs in which each client writes with each of its codecs, and reads from the newest and some others."""
    pairs: set[Pair] = set()
    for place, tried in enumerate(TRIED_CLIENTS):
        codecs = tried.codecs if not tried.is_console else (tried.codecs[place % len(tried.codecs)],)
        pairs.update((tried.name, codec, _reader_of(place, codec).name) for codec in codecs)
        own = tried.codecs[place % len(tried.codecs)]
        pairs.update({(NEWEST, own, tried.name), (tried.name, own, NEWEST), (tried.name, own, tried.name)})
    return sorted(pairs)


def pairs_of(writer: TriedClient) -> list[Pair]:
    """Returns all pairs of a writer, ordered by codec, so that all readers of a topic follow each other."""
    readers = [(codec, reader) for codec in writer.codecs for reader in TRIED_CLIENTS if codec in reader.codecs]
    return [(writer.name, codec, reader.name) for codec, reader in readers]


WRITER = os.environ.get("KAFKAPY_LEGACY_PAIRS")
PAIRS = pairs_of(BY_NAME[WRITER]) if WRITER else sampled_pairs()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("writer", "codec", "reader"), PAIRS)
def test_pair(writer: str, codec: str, reader: str, carriage: Carriage) -> None:
    carriage.check(writer, codec, reader)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", ["0.8.2", "0.9", "0.10"])
def test_zstd_is_refused_to_a_reader_that_came_before_it(version: str, carriage: Carriage) -> None:
    with pytest.raises(AssertionError, match="UnsupportedCompressionType"):
        carriage.check(NEWEST, "zstd", f"kafka-python-3.0.12-as-{version}")
