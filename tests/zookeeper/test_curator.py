"""A program with the recipes of Apache Curator observes the same with the listener as with Apache ZooKeeper."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.clients.legacy.installation import jars_of, java_classes, java_command
from tests.zookeeper import real_zookeeper
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import RealZooKeeper

pytestmark = pytest.mark.peer

RELEASE = "5.7.1"
SOURCE = Path(__file__).parent / "programs" / "CuratorRecipes.java"
POM = Path(__file__).with_name("curator_pom.xml")


def observations(server):
    """Returns the lines that the program prints."""
    releases = {"curator": RELEASE, "zookeeper": real_zookeeper.RELEASE}
    jars = jars_of(POM, f"curator-{RELEASE}", *(f"-D{name}.version={release}" for name, release in releases.items()))
    classes = java_classes(f"curator-recipes-{RELEASE}", SOURCE, jars)
    client = KazooClient(server.zookeeper)
    client.start(timeout=60)  # the server serves now
    client.stop()
    client.close()
    done = subprocess.run(
        [*java_command(), "-cp", f"{classes}:{jars}/*", "CuratorRecipes", server.zookeeper],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_recipes_observe_the_same_as_with_zookeeper(tmp_path):
    with ListeningBroker(tmp_path / "ours") as broker:
        found = observations(broker)
    with RealZooKeeper(tmp_path / "real") as real:
        expected = observations(real)
    assert found == expected
    assert "failed" not in "\n".join(found)
    for line in (
        "lock true false",
        "lock passed on",
        "counter 40",
        "cache NODE_CHANGED /cache/a/b 2",
        "leader true theirs",
    ):
        assert line in found
