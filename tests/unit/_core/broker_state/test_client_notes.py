"""The notes on which client has appended which offsets."""

from __future__ import annotations

import pytest

from kafkapy._core.broker_state.client_notes import ClientNames, ClientNotes


def named(names: ClientNames, runs: list[tuple[int, int]]) -> list[tuple[int, str]]:
    return [(offset, names.name(number)) for offset, number in runs]


def test_appends_of_one_client_are_one_run():
    names = ClientNames()
    notes = ClientNotes(names)
    for offset, client in ((3, b"a"), (5, b"a"), (9, b"b"), (10, b"b"), (11, b""), (12, b"a")):
        notes.note_append(offset, client)
    assert named(names, notes.runs_between(0, 100)) == [(3, "a"), (9, "b"), (11, ""), (12, "a")]
    assert named(names, notes.runs_between(10, 12)) == [(9, "b"), (11, "")]
    assert notes.runs_between(0, 3) == []


def test_the_next_append_replaces_the_note_of_a_failed_one():
    names = ClientNames()
    notes = ClientNotes(names)
    for offset, client in ((0, b"a"), (5, b"b"), (7, b"c"), (5, b"a"), (6, b"d"), (6, b"e")):
        notes.note_append(offset, client)
    assert named(names, notes.runs_between(0, 100)) == [(0, "a"), (6, "e")]


def test_runs_are_forgotten_up_to_an_offset():
    notes = ClientNotes(ClientNames())
    for offset in range(0, 100, 10):
        notes.note_append(offset, b"%d" % offset)
    notes.forget_below(35)
    assert [offset for offset, _ in notes.runs_between(0, 100)] == list(range(30, 100, 10))
    notes.forget_below(1000)
    assert notes.runs_between(0, 2000) == [(90, 10)]
    notes.forget_below(0)
    assert len(notes) == 1


def test_the_number_of_runs_is_bounded():
    names = ClientNames()
    notes = ClientNotes(names)
    for offset in range(20_000):
        notes.note_append(offset, b"%d" % (offset % 2))
    assert len(notes) == 16_384
    runs = named(names, notes.runs_between(0, 20_000))
    assert runs[:2] == [(0, "0"), (1, "1")] and runs[-2:] == [(16_382, "0"), (16_383, "")]
    notes.forget_below(20_000)
    notes.note_append(20_000, b"0")
    assert named(names, notes.runs_between(0, 30_000)) == [(16_383, ""), (20_000, "0")]


def test_the_number_of_names_is_bounded():
    names = ClientNames()
    notes = ClientNotes(names)
    for offset in range(1500):
        notes.note_append(offset, b"client-%d" % offset)
    notes.note_append(1500, b"client-7")
    notes.note_append(1501, b"x" * 256)
    runs = named(names, notes.runs_between(0, 2000))
    assert runs[:1023] == [(offset, f"client-{offset}") for offset in range(1023)]
    assert runs[1023:] == [(1023, ""), (1500, "client-7"), (1501, "")]


def test_an_unknown_number_has_no_name():
    with pytest.raises(IndexError, match="number 1"):
        ClientNames().name(1)
