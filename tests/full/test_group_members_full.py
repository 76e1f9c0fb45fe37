"""Groups of every client: members join, leave, crash and stall; each record is read once."""

from __future__ import annotations

import pytest

from tests.clients.members.member import ASSIGNORS
from tests.clients.test_group_members import NewGroup, join_leave_crash_and_stall, name, new_group, programs, server
from tests.server_process import ServerProcess

__all__ = ["name", "new_group", "programs", "server"]  # the fixtures


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", ASSIGNORS)
def test_join_leave_crash_and_stall(
    client: str,
    new_group: NewGroup,
    server: ServerProcess,
    name: str,
) -> None:
    join_leave_crash_and_stall(client, new_group, server, name)
