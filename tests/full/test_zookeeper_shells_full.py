"""ZooKeeperMain of 3.4 to 3.9, unmodified: it prints the same with `zookeeper.listener` as with Apache ZooKeeper."""

from __future__ import annotations

import re
import subprocess
import time

import pytest

from kafkapy.tools.zookeeper.client import ZooKeeperClient
from tests.clients.legacy.installation import jars_of, java_command
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import POM, RealZooKeeper
from tests.zookeeper.test_shell import NODES, QUOTAS, WATCHES, normal

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]
RELEASES = ["3.5.10", "3.6.4", "3.7.2", "3.8.4", "3.9.3"]
OLDEST = "3.4.10"  # later releases of 3.4 do not connect with today's Java
CHROOT = "/shells"
# Reconfiguration is not served.
SCRIPTS = {
    name: "".join(line for line in script.splitlines(keepends=True) if "config" not in line)
    for name, script in {"nodes": NODES, "watches": WATCHES, "quotas": QUOTAS}.items()
}
# The shell of 3.4 ends at the first error, and prints children in the order of the server's hash table.
OLDEST_SCRIPT = """
create /o hello
create -s /o/s x
ls /o
ls2 /o
get /o
stat /o
set /o world
set /o again 1
get /o watch
set /o seen
getAcl /o
setAcl /o world:anyone:cdrwa
addauth digest me:secret
create /o/mine x auth::cdrwa
getAcl /o/mine
delete /o/mine
create -e /o/e y
stat /o/e
setquota -n 10 /o
listquota /o
delquota /o
nonsense
history
rmr /o
quit
"""
VARYING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"= ... ... \d\d \d\d:\d\d:\d\d \S+ 20\d\d"), "= TIME"),
    (re.compile(r"\b0x[0-9a-f]+"), "HEX"),
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp
    with RealZooKeeper(folder("real")) as real, ListeningBroker(folder("ours")) as ours:
        for server in (real, ours):
            with ZooKeeperClient(server.zookeeper) as client:
                client.create(CHROOT)
        yield real, ours


def printed(release, server, script):
    """Returns the lines, in order, and the events that the shell of this release prints for the script."""
    jars = jars_of(POM, f"zookeeper-{release}", f"-Dzookeeper.version={release}")
    (server.directory / "no-log.properties").write_text("log4j.rootLogger=OFF\n")
    log = f"-Dlog4j.configuration=file:{server.directory / 'no-log.properties'}"
    address = f"{server.zookeeper}{CHROOT}"
    # JLine of 3.4 needs a terminal, and logback of 3.8 would log to standard output.
    path = ":".join(str(each) for each in sorted(jars.glob("*.jar")) if not each.name.startswith(("jline", "logback")))
    command = [*java_command(), log, "-cp", path, "org.apache.zookeeper.ZooKeeperMain", "-server", address]
    lines = script.strip().replace("ADDRESS", address) + "\n"
    shell = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if release == OLDEST:
        time.sleep(5)  # this shell does not wait for its connection before the first command
    out, log_text = shell.communicate(lines, timeout=120)
    text = normal(out)
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    errors = [line for line in log_text.splitlines() if not line.startswith(("SLF4J", "log4j"))]
    for pattern, instead in VARYING:
        errors = [pattern.sub(instead, line) for line in errors]
    # A thread of its own prints the events, before or within what the main thread prints.
    lines = [line for line in text.splitlines() if line not in ("", "WATCHER::")]
    events = [line for line in lines if line.startswith("WatchedEvent")]
    return [line for line in lines if line not in events], events, errors


def assert_equal(found, expected):
    assert found[0] == expected[0]
    count = min(len(found[1]), len(expected[1]))
    assert found[1][:count] == expected[1][:count]  # the shell does not wait for the last events before it ends
    assert found[2] == expected[2]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("release", RELEASES)
def test_the_shell_prints_the_same(servers, release, script):
    expected, found = (printed(release, server, SCRIPTS[script]) for server in servers)
    assert len(expected[0]) >= 6
    assert_equal(found, expected)


def test_the_oldest_shell_prints_the_same(servers):
    expected, found = (printed(OLDEST, server, OLDEST_SCRIPT) for server in servers)
    assert expected[0][-1] == "Quitting..."
    assert_equal(found, expected)
