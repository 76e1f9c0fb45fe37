"""The ranges of offsets that an acknowledgement request contains."""

from __future__ import annotations

from kafkapy.client.acknowledgements import NO_RECORD, Acknowledgements, AcknowledgeType, Run, runs_of

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def test_neighbours_of_one_type_become_a_run_and_others_do_not():
    assert runs_of([], ACCEPT) == []
    assert runs_of([4, 5, 6], ACCEPT) == [Run(4, 6, ACCEPT)]
    assert runs_of([4, 5, 8], ACCEPT) == [Run(4, 5, ACCEPT), Run(8, 8, ACCEPT)]
    made = Acknowledgements([(5, 5, REJECT), (0, 2, ACCEPT), (3, 4, ACCEPT), (9, 9, NO_RECORD)])
    assert made.runs == [Run(0, 4, ACCEPT), Run(5, 5, REJECT), Run(9, 9, NO_RECORD)]
    assert len(made) == 7 and made.offsets() == {0, 1, 2, 3, 4, 5, 9}


def test_short_runs_are_sent_with_a_type_for_each_offset():
    parts = [(0, 1, ACCEPT), (2, 2, RELEASE), (3, 22, ACCEPT), (23, 23, REJECT), (30, 30, ACCEPT)]
    assert Acknowledgements(parts).ranges() == [
        (0, 2, [ACCEPT, ACCEPT, RELEASE]),
        (3, 22, [ACCEPT]),
        (23, 23, [REJECT]),
        (30, 30, [ACCEPT]),
    ]


def test_later_acknowledgements_override_earlier_ones():
    first = Acknowledgements([(0, 3, ACCEPT), (4, 4, RENEW)], {4: "record"})
    assert first.followed_by(Acknowledgements([(6, 7, ACCEPT)])).runs == [*first.runs, Run(6, 7, ACCEPT)]
    later = first.followed_by(Acknowledgements([(3, 4, REJECT)]))
    assert later.runs == [Run(0, 2, ACCEPT), Run(3, 4, REJECT)] and later.renewals == {}
