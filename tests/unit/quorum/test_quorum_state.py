"""The file quorum-state in both of Kafka's forms."""

import pytest

from kafkapy.quorum.quorum_state import read_quorum_epoch, write_quorum_state
from kafkapy.storage.filesystem import Filesystem

STATIC = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    '"data_version":0}'
)
DYNAMIC = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


@pytest.mark.parametrize(("dynamic", "expected"), [(False, STATIC), (True, DYNAMIC)])
def test_written_as_kafka_writes_it(tmp_path, dynamic, expected):
    write_quorum_state(Filesystem(), str(tmp_path), 1, 1, dynamic=dynamic)
    assert (tmp_path / "quorum-state").read_text() == expected
    assert read_quorum_epoch(str(tmp_path)) == 1


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"leaderEpoch":"x"}'])
def test_missing_or_unreadable_leaves_it_to_the_log(tmp_path, content):
    if content is not None:
        (tmp_path / "quorum-state").write_text(content)
    assert read_quorum_epoch(str(tmp_path)) == -1
