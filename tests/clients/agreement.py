"""Compares our client's hashes of keys and assignments of partitions with those of Java's client.

Java's sticky assignors iterate over hash tables, so that the order of a table decides between assignments that are
equally good. Our assignors use alphabetical order instead, and the last partition of a topic first. This module
chooses member ids and topic names for which Java's tables have the same order: the hashes of the ids are consecutive
numbers, and the partitions of a topic are in the table in descending order.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkapy._core.bytes.murmur2 import murmur2
from kafkapy.client.assignors import ASSIGNORS, GroupMember
from kafkapy.client.consumer_protocol import decode_subscription, encode_subscription
from kafkapy.types import TopicPartition

SOURCE = Path(__file__).with_name("Agreement.java")
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
MEMBERS = tuple(f"m{number}" for number in range(10))
TOPICS = ("N", "bp", "ca", "n")
RACKS = ("a", "b", "c")
MOST_PARTITIONS = 12


def ask_java(kafka: Path, classes: Path, questions: Sequence[dict[str, Any]], timeout_s: float) -> list[Any]:
    """Returns Java's results; `classes` is an empty directory for the compiled program."""
    class_path = f"{classes}:{kafka}/libs/*"
    compile_it = ["javac", "-nowarn", "-proc:none", "-cp", class_path, "-d", str(classes), str(SOURCE)]
    subprocess.run(compile_it, check=True, capture_output=True, timeout=timeout_s)
    options = ["-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    done = subprocess.run(
        ["java", *options, "-cp", class_path, "Agreement"],
        input="".join(json.dumps(each) + "\n" for each in questions),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # Java also writes its logging to standard output; results begin with "= ".
    answers = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("= ")]
    assert len(answers) == len(questions), done.stdout[:2000]
    return answers


def hash_questions(count: int, seed: int) -> list[tuple[bytes, dict[str, Any]]]:
    """Returns keys of every length up to 64 bytes."""
    chance = random.Random(seed)
    keys = [chance.randbytes(chance.randrange(65)) for _ in range(count)]
    return [(key, {"murmur2": key.hex()}) for key in keys]


Group = tuple[dict[str, GroupMember], dict[str, int], dict[str, list[frozenset[str]]]]


def group_of(chance: random.Random) -> Group:
    """Returns a random group, whose members may be of different generations, topics and racks, its partition counts and
    the racks of the replicas."""
    counts = {topic: chance.randrange(MOST_PARTITIONS + 1) for topic in TOPICS}
    same = chance.random() < 0.5
    common = chance.sample(TOPICS, chance.randrange(1, len(TOPICS) + 1))
    ids = sorted(chance.sample(MEMBERS, chance.randrange(1, len(MEMBERS) + 1)))
    topics = {each: common if same else chance.sample(TOPICS, chance.randrange(1, len(TOPICS) + 1)) for each in ids}
    owned: dict[str, list[TopicPartition]] = {each: [] for each in ids}
    if chance.random() < 0.8:
        for topic, count in counts.items():
            for number in range(count):
                draw = chance.random()
                for _ in range(0 if draw < 0.2 else 1 if draw < 0.95 else 2):
                    owned[chance.choice(ids)].append(TopicPartition(topic, number))
    latest = chance.randrange(1, 5)
    generations = {each: latest if chance.random() < 0.9 else chance.randrange(latest) for each in ids}
    for each in ids:
        if generations[each] < latest:
            # Java returns a partition to its owner of an earlier generation even if it no longer reads the topic.
            owned[each] = [where for where in owned[each] if where.topic in topics[each]]
    share = chance.choice([0.0, 0.5, 1.0])  # of members with a rack
    racks = {each: chance.choice(RACKS) if chance.random() < share else None for each in ids}
    width = chance.randrange(len(RACKS) + 1)
    replicas = {
        topic: [frozenset(chance.sample(RACKS, width)) for _ in range(count)] for topic, count in counts.items()
    }
    return (
        {
            each: GroupMember(
                tuple(topics[each]),
                tuple(dict.fromkeys(owned[each])),
                generations[each],
                f"instance-{each}" if chance.random() < 0.2 else None,
                racks[each],
            )
            for each in ids
        },
        counts,
        replicas,
    )


def assignment_question(
    name: str, members: dict[str, GroupMember], counts: dict[str, int], racks: dict[str, list[frozenset[str]]]
) -> dict[str, Any]:
    """Returns the input for Java: the subscription of every member as it would send it to the coordinator."""
    return {
        "assignor": name,
        "counts": {topic: count for topic, count in counts.items() if count},
        "racks": {topic: [sorted(each) for each in known] for topic, known in racks.items()},
        "members": {
            member_id: {
                "subscription": encode_subscription(
                    ASSIGNORS[name], each.topics, each.owned, each.generation, each.rack or ""
                ).hex(),
                "instance": each.instance_id,
            }
            for member_id, each in members.items()
        },
    }


def our_assignment(question: dict[str, Any]) -> dict[str, list[str]]:
    """Returns our client's assignment for the input of `assignment_question`."""
    assignor = ASSIGNORS[question["assignor"]]
    members = {
        member_id: decode_subscription(assignor, bytes.fromhex(each["subscription"]), each["instance"])
        for member_id, each in question["members"].items()
    }
    racks = {topic: [frozenset(each) for each in known] for topic, known in question["racks"].items()}
    assigned = assignor.assign(members, question["counts"], racks)
    return {member_id: sorted(map(str, each)) for member_id, each in assigned.items()}


def assert_agreement(kafka: Path, classes: Path, count: int, seed: int, timeout_s: float) -> None:
    """Compares `count` keys, and the assignments of `count` groups by each assignor, with Java's results."""
    chance = random.Random(seed)
    hashes = hash_questions(count, seed)
    groups = [group_of(chance) for _ in range(count)]
    questions = [assignment_question(name, *group) for name in NAMES for group in groups]
    answers = ask_java(kafka, classes, [question for _, question in hashes] + questions, timeout_s)
    for (key, _), answer in zip(hashes, answers, strict=False):
        assert murmur2(key) == answer, key.hex()
    differing = [
        (question, our_assignment(question), answer)
        for question, answer in zip(questions, answers[len(hashes) :], strict=True)
        if our_assignment(question) != {member_id: sorted(each) for member_id, each in answer.items()}
    ]
    assert not differing, f"{len(differing)} of {len(questions)}; the first: {differing[0]}"
