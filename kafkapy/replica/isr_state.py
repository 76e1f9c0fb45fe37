"""The in-sync replicas of a partition and a change that the controller has not confirmed yet (KIP-497).

committed --(a follower caught up)----> expanding --+
    |                                               +--(confirmed, refused or overtaken)--> committed
    +------(followers fell behind)----> shrinking --+
"""

from __future__ import annotations


class IsrState:
    """The ISR that the controller confirmed last (`isr`) and the ISR that the leader proposes (`proposed_isr`). The
    object does not change after its construction.

    The high watermark waits for `maximal_isr`, the union of both, so that every replica that the controller may put
    into the ISR has all records below the high watermark. Invariant: isr and proposed_isr are subsets of maximal_isr.
    """

    __slots__ = ("is_in_flight", "isr", "maximal_isr", "proposed_isr")

    def __init__(
        self, isr: frozenset[int], maximal_isr: frozenset[int], proposed_isr: frozenset[int], is_in_flight: bool
    ) -> None:
        assert isr <= maximal_isr and proposed_isr <= maximal_isr, "a replica in the ISR would not be waited for"
        self.isr = isr
        self.maximal_isr = maximal_isr
        self.proposed_isr = proposed_isr
        self.is_in_flight = is_in_flight

    @classmethod
    def committed(cls, isr: frozenset[int]) -> IsrState:
        return cls(isr, isr, isr, False)

    def expanding(self, broker_id: int) -> IsrState:
        grown = self.isr | {broker_id}
        return IsrState(self.isr, grown, grown, True)

    def shrinking(self, out_of_sync: frozenset[int]) -> IsrState:
        return IsrState(self.isr, self.isr, self.isr - out_of_sync, True)

    def last_committed(self) -> IsrState:
        return IsrState.committed(self.isr)
