"""Compares groups with Apache Kafka's in one run: many members in one group, and many groups after a restart.

    python -m bench.groups [--members 1000] [--groups 10000] [--servers kafkapy,kafka] [--output FILE.json]

Members: measured from the first JoinGroup until every member has its assignment, and then from an additional member's
join until all have theirs again. `group.initial.rebalance.delay.ms` is 0, as in the configuration file of Apache
Kafka. Members send heartbeats every 500 ms, by which they learn of a rebalance.

Groups: each group without members has offsets for ten partitions. The broker is stopped and started. The time is
measured from the start of the process until the first OffsetFetch that finds all offsets; memory is measured then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import machine
from bench.servers import SERVERS, Server
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, request_header_version, response_header_version
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

GROUP, TOPIC = "crowd", "topic"
PARTITIONS_PER_GROUP = 10
HEARTBEAT_SECONDS = 0.5
GROUPS_IN_A_FETCH = 500
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x05topic\xff\xff\xff\xff\x00\x00\x00\x00"
ASSIGNMENT = b"\x00\x01\x00\x00\x00\x01\x00\x05topic\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"


class Connection:
    """A connection that sends one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, server: Server) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 24))

    async def ask(self, key: ApiKey, version: int, request: Any, response_class: Any) -> Any:
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="bench")
        body = header.encode(request_header_version(key, version)) + request.encode(version)
        self._writer.write(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        payload = await self._reader.readexactly(size)
        return response_class.decode(payload, version, 5 if response_header_version(key, version) else 4)

    def close(self) -> None:
        self._writer.close()


class Member:
    """A member of the group, which joins, and joins again when the coordinator requires it.

    `generation` is the generation of its assignment, -1 before the first.
    """

    def __init__(self, crowd: Crowd, connection: Connection) -> None:
        self._crowd = crowd
        self._connection = connection
        self._id = ""
        self.generation = -1

    async def live(self) -> None:
        while True:
            await self._join()
            while await self._beat() is Error.NONE:
                await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self._id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        joined = await self._connection.ask(ApiKey.JOIN_GROUP, 5, request, JoinGroupResponse)
        self._id = joined.member_id
        if joined.error_code == Error.MEMBER_ID_REQUIRED:
            await self._join()
            return
        if joined.error_code != Error.NONE:
            raise RuntimeError(f"JoinGroup: {Error(joined.error_code).name}")
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=each.member_id, assignment=ASSIGNMENT)
            for each in joined.members
        ]
        sync = SyncGroupRequest(
            group_id=GROUP, generation_id=joined.generation_id, member_id=self._id, assignments=assignments
        )
        synced = await self._connection.ask(ApiKey.SYNC_GROUP, 3, sync, SyncGroupResponse)
        if synced.error_code == Error.NONE:
            self.generation = joined.generation_id
            self._crowd.note()
        else:
            await self._join()

    async def _beat(self) -> Error:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self._id)
        answered = await self._connection.ask(ApiKey.HEARTBEAT, 3, request, HeartbeatResponse)
        return Error(answered.error_code)


class Crowd:
    """The members of one group, each with a connection of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._members: list[Member] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stable = asyncio.Event()

    async def add(self, count: int) -> dict[str, float]:
        """Adds `count` members; measures from their first join until all members share one generation.

        Returns the seconds and the broker's CPU seconds.
        """
        connections = [await Connection.open(self._server) for _ in range(count)]
        cpu, began = self._server.cpu_seconds(), time.monotonic()
        self._is_stable.clear()
        for connection in connections:
            member = Member(self, connection)
            self._members.append(member)
            self._tasks.append(asyncio.ensure_future(member.live()))
        stable = asyncio.ensure_future(self._is_stable.wait())
        done, _ = await asyncio.wait([stable, *self._tasks], timeout=300, return_when=asyncio.FIRST_COMPLETED)
        if stable not in done:
            raise RuntimeError(f"the group is not stable: {[task.exception() for task in done if task is not stable]}")
        return {"seconds": time.monotonic() - began, "cpu_seconds": self._server.cpu_seconds() - cpu}

    def note(self) -> None:
        generations = {member.generation for member in self._members}
        if len(generations) == 1 and -1 not in generations:
            self._is_stable.set()

    async def idle(self, seconds: float) -> dict[str, float]:
        """Waits for `seconds`, in which members only send heartbeats; returns the broker's CPU seconds."""
        cpu = self._server.cpu_seconds()
        await asyncio.sleep(seconds)
        return {"seconds": seconds, "cpu_seconds": self._server.cpu_seconds() - cpu}

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def crowd(server: Server, members: int) -> dict[str, dict[str, float]]:
    await coordinator_is_there(server)
    group = Crowd(server)
    figures = {f"{members} members, join to stable": await group.add(members)}
    figures["heartbeats for 5 s"] = await group.idle(5)
    figures["one more member"] = await group.add(1)
    await group.leave()
    return figures


async def coordinator_is_there(server: Server) -> None:
    connection = await Connection.open(server)
    while True:
        request = FindCoordinatorRequest(key=GROUP)
        found = await connection.ask(ApiKey.FIND_COORDINATOR, 2, request, FindCoordinatorResponse)
        heard = await connection.ask(ApiKey.HEARTBEAT, 3, HeartbeatRequest(group_id=GROUP), HeartbeatResponse)
        if found.error_code == Error.NONE and heard.error_code == Error.UNKNOWN_MEMBER_ID:
            break
        await asyncio.sleep(0.1)
    connection.close()


def group_name(number: int) -> str:
    return f"group-{number}"


async def commit_offsets(server: Server, groups: int) -> dict[str, float]:
    await coordinator_is_there(server)
    cpu, began = server.cpu_seconds(), time.monotonic()
    partitions = [
        OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
        for index in range(PARTITIONS_PER_GROUP)
    ]
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]

    async def commit_some(first: int) -> None:
        connection = await Connection.open(server)
        for number in range(first, groups, 16):
            request = OffsetCommitRequest(group_id=group_name(number), topics=topics)
            answer = await connection.ask(ApiKey.OFFSET_COMMIT, 8, request, OffsetCommitResponse)
            if any(each.error_code for topic in answer.topics for each in topic.partitions):
                raise RuntimeError(f"OffsetCommit: {answer}")
        connection.close()

    await asyncio.gather(*(commit_some(first) for first in range(16)))
    return {"seconds": time.monotonic() - began, "cpu_seconds": server.cpu_seconds() - cpu}


async def find_all_offsets(server: Server, groups: int) -> None:
    """Waits until the coordinator returns the offsets of every group."""
    connection = await Connection.open(server)
    names = [group_name(number) for number in range(groups)]
    for first in range(0, groups, GROUPS_IN_A_FETCH):
        wanted = names[first : first + GROUPS_IN_A_FETCH]
        while wanted:
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in wanted]
            )
            answer = await connection.ask(ApiKey.OFFSET_FETCH, 8, request, OffsetFetchResponse)
            wanted = []
            for group in answer.groups:
                if group.error_code == Error.NONE:
                    found = sum(len(topic.partitions) for topic in group.topics)
                    if found != PARTITIONS_PER_GROUP:
                        raise RuntimeError(f"{group.group_id} has {found} offsets")
                elif group.error_code in (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR):
                    wanted.append(group.group_id)
                else:
                    raise RuntimeError(f"OffsetFetch: {Error(group.error_code).name}")
            if wanted:
                await asyncio.sleep(0.02)
    connection.close()


def load(server: Server, groups: int) -> dict[str, dict[str, float]]:
    """Returns the figures of a server that has just been started on an empty directory."""
    server.create_topic(TOPIC, PARTITIONS_PER_GROUP, {})
    asyncio.run(coordinator_is_there(server))
    figures = {"restart, no groups": restart(server, 0)}
    figures[f"{groups} groups commit"] = asyncio.run(commit_offsets(server, groups))
    figures[f"restart, {groups} groups"] = restart(server, groups)
    return figures


def restart(server: Server, groups: int) -> dict[str, float]:
    server.stop()
    began = time.monotonic()
    server.start()
    listening = time.monotonic() - began
    asyncio.run(coordinator_is_there(server))
    asyncio.run(find_all_offsets(server, groups))
    return {
        "seconds": time.monotonic() - began,
        "listening after": listening,
        "cpu_seconds": server.cpu_seconds(),
        "memory_mb": server.memory_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--servers", default="kafkapy,kafka")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="kafkapy-bench-") as directory:
        for name in options.servers.split(","):
            server = SERVERS[name](Path(directory), {"group.initial.rebalance.delay.ms": "0"})
            server.start()
            try:
                result[name] = load(server, options.groups)
                result[name] |= asyncio.run(crowd(server, options.members))
            finally:
                server.stop()
            for what, figures in result[name].items():
                values = ", ".join(f"{key} {value:.2f}" for key, value in figures.items())
                print(f"{name:<8} {what:<36} {values}", file=sys.stderr)
    if options.output:
        options.output.write_text(json.dumps({"machine": machine(), "figures": result}, indent=1))


if __name__ == "__main__":
    main()
