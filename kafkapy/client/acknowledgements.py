"""The acknowledgements of one partition's acquired records, as runs of offsets with one type. This module has no state
and does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.named_tuple import NamedTuple

# The type of an acquired offset that has no record, such as the offset of a transaction marker.
NO_RECORD = 0
# A run of fewer offsets is sent as one type for each offset, together with its neighbours.
_SHORTEST_RUN = 10


class AcknowledgeType(IntEnum):
    """The result of processing a record, as a share consumer reports it; the values are those of the protocol."""

    ACCEPT = 1
    """The record was processed; the group does not deliver it again."""
    RELEASE = 2
    """The record was not processed; the group delivers it again, up to its limit of deliveries."""
    REJECT = 3
    """The record cannot be processed; the group does not deliver it again."""
    RENEW = 4
    """The record is being processed; the consumer keeps it for another acquisition lock."""


class Run(NamedTuple):
    """Consecutive offsets from `first` to `last`, both included, that have one type of acknowledgement.

    `type` is a value of AcknowledgeType.
    """

    first: int
    last: int
    type: int


class AcknowledgementRange(NamedTuple):
    """The consecutive offsets from `first` to `last`, both included, as an acknowledgement request has them.

    `types` has one value, which applies to all of these offsets, or one value for each offset.
    """

    first: int
    last: int
    types: list[int]


def runs_of(offsets: Sequence[int], kind: int) -> list[Run]:
    """Returns the runs of consecutive numbers in `offsets`, which are ascending; all runs have the type `kind`."""
    if not offsets:
        return []
    if offsets[-1] - offsets[0] + 1 == len(offsets):
        return [Run(offsets[0], offsets[-1], kind)]
    return list(join_runs((offset, offset, kind) for offset in offsets))


def join_runs(parts: Iterable[tuple[int, int, int]]) -> Iterator[Run]:
    """Yields the parts as runs, and joins adjacent parts of the same type to one run.

    A part is (first offset, last offset, type); the parts are in the order of offsets.
    """
    first = last = kind = -1
    for part_first, part_last, part_kind in parts:
        if part_first == last + 1 and part_kind == kind:
            last = part_last
            continue
        if kind >= 0:
            yield Run(first, last, kind)
        first, last, kind = part_first, part_last, part_kind
    if kind >= 0:
        yield Run(first, last, kind)


class Acknowledgements:
    """The acknowledgements of one partition that are sent together. The object does not change after its construction.

    `runs` are in the order of offsets and do not overlap. `renewals` maps each offset with the type RENEW to its
    record: the application gets the record again after the record's lock was renewed.
    """

    __slots__ = ("renewals", "runs")

    def __init__(
        self, parts: Iterable[tuple[int, int, int]], renewals: dict[int, ConsumerRecord] | None = None
    ) -> None:
        self.runs = list(join_runs(sorted(parts)))
        self.renewals = renewals or {}

    def __len__(self) -> int:
        return sum(run.last - run.first + 1 for run in self.runs)

    def offsets(self) -> frozenset[int]:
        """Returns all acknowledged offsets."""
        return frozenset(offset for run in self.runs for offset in range(run.first, run.last + 1))

    def followed_by(self, later: Acknowledgements) -> Acknowledgements:
        """Returns these acknowledgements combined with `later`; an offset in both has its type in `later`."""
        parts = sorted(self.runs + later.runs)
        if any(first.last >= second.first for first, second in pairwise(parts)):
            types = {
                offset: run.type
                for each in (self, later)
                for run in each.runs
                for offset in range(run.first, run.last + 1)
            }
            parts = [Run(offset, offset, kind) for offset, kind in types.items()]
            renewals = {**self.renewals, **later.renewals}
            kept = {offset: record for offset, record in renewals.items() if types[offset] == AcknowledgeType.RENEW}
            return Acknowledgements(parts, kept)
        return Acknowledgements(parts, {**self.renewals, **later.renewals})

    def ranges(self) -> list[AcknowledgementRange]:
        """Returns the ranges to send, in the order of offsets.

        A run of at least `_SHORTEST_RUN` offsets becomes a range with one type. Shorter runs that follow each other
        without a gap are joined to one range, which has a type for each offset.
        """
        found: list[AcknowledgementRange] = []
        short: list[Run] = []
        for run in self.runs:
            if short and short[-1].last + 1 != run.first:
                found += _as_range(short)
                short = []
            if run.last - run.first + 1 < _SHORTEST_RUN:
                short.append(run)
                continue
            found += _as_range(short)
            short = []
            found.append(AcknowledgementRange(run.first, run.last, [run.type]))
        return found + _as_range(short)


def _as_range(runs: Sequence[Run]) -> list[AcknowledgementRange]:
    """Returns a list with one range for all runs; [] if there are no runs. The runs must follow each other without a
    gap.
    """
    if len(runs) <= 1:
        return [AcknowledgementRange(run.first, run.last, [run.type]) for run in runs]
    types = [run.type for run in runs for _ in range(run.first, run.last + 1)]
    return [AcknowledgementRange(runs[0].first, runs[-1].last, types)]
