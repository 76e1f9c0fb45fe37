"""The file quorum-state in both of Kafka's forms."""

import json

import pytest

from kafkapy.quorum.quorum_state import read_election, write_election
from kafkapy.quorum.raft.effects import ElectionState
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.storage.filesystem import Filesystem

STATIC = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    '"data_version":0}'
)
DYNAMIC = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


@pytest.mark.parametrize(("dynamic", "expected"), [(False, STATIC), (True, DYNAMIC)])
def test_written_as_kafka_writes_it(tmp_path, dynamic, expected):
    write_election(Filesystem(), str(tmp_path), ElectionState(1, 1, None, (1,)), is_dynamic=dynamic)
    assert (tmp_path / "quorum-state").read_text() == expected
    assert read_election(str(tmp_path)).epoch == 1


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"leaderEpoch":"x"}'])
def test_missing_or_unreadable_leaves_it_to_the_log(tmp_path, content):
    if content is not None:
        (tmp_path / "quorum-state").write_text(content)
    assert read_election(str(tmp_path)) is None


DIRECTORY = bytes(range(16))


@pytest.mark.parametrize(
    "state",
    [
        ElectionState(0),
        ElectionState(7, 2),
        ElectionState(7, -1, ReplicaKey(3, DIRECTORY)),
        ElectionState(7, 2, ReplicaKey(3, DIRECTORY)),
    ],
)
def test_the_dynamic_form_keeps_everything_but_the_voters(tmp_path, state):
    write_election(Filesystem(), str(tmp_path), state._replace(voters=(1, 2)), is_dynamic=True)
    assert read_election(str(tmp_path)) == state


def test_the_static_form_keeps_the_voters_but_no_directory_id(tmp_path):
    state = ElectionState(7, -1, ReplicaKey(3, DIRECTORY), (1, 2, 3))
    write_election(Filesystem(), str(tmp_path), state, is_dynamic=False)
    assert (tmp_path / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":3,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
    )
    assert read_election(str(tmp_path)) == state._replace(voted=ReplicaKey(3))


@pytest.mark.parametrize(
    ("field", "value"),
    [("leaderEpoch", -1), ("leaderId", None), ("votedId", "3"), ("data_version", 2), ("votedDirectoryId", "short")],
)
def test_a_damaged_field_makes_the_file_unreadable(tmp_path, caplog, field, value):
    fields = {**json.loads(DYNAMIC), field: value}
    (tmp_path / "quorum-state").write_text(json.dumps(fields))
    assert read_election(str(tmp_path)) is None
    assert "cannot be read" in caplog.text
