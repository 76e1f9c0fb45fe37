"""The warning before the process runs out of file descriptors."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator

from kafkapy.server.descriptor_watch import DescriptorWatch, lowest_free_descriptor

LIMIT = 100


def warnings_of(caplog, answers: list[int | OSError]) -> list[int]:
    """Returns the numbers of the checks that warn; `answers` has the number of open files for each check."""
    remaining: Iterator[int | OSError] = iter(answers)

    def lowest_free() -> int:
        answer = next(remaining)
        if isinstance(answer, OSError):
            raise answer
        return answer

    watch = DescriptorWatch(LIMIT, lowest_free)
    warned = []
    for number in range(len(answers)):
        caplog.clear()
        watch.check()
        warned += [number] * len(caplog.records)
    return warned


def test_once_when_few_are_left_and_again_after_there_were_more(caplog):
    assert warnings_of(caplog, [50, 80, 81, 95, 75, 90, 69, 81]) == [2, 7]


def test_none_left_is_no_failure(caplog):
    assert warnings_of(caplog, [OSError(errno.EMFILE, "Too many open files"), 99]) == [0]


def test_the_warning_names_the_limit(caplog):
    assert warnings_of(caplog, [OSError(errno.EMFILE, "Too many open files")]) == [0]
    assert caplog.records[0].getMessage().startswith(f"{LIMIT} of at most {LIMIT} files are open")


def test_more_partitions_than_files(caplog):
    caplog.set_level(logging.WARNING)
    DescriptorWatch(LIMIT).warn_at_start(80)
    assert not caplog.records
    DescriptorWatch(LIMIT).warn_at_start(81)
    assert "At most 100 files" in caplog.text
    assert "81 partitions" in caplog.text


def test_the_lowest_free_descriptor_is_the_next_one():
    free = lowest_free_descriptor()
    descriptor = os.dup(2)
    os.close(descriptor)
    assert descriptor == free
