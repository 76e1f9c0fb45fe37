"""ZooKeeper's shell and ours print the same for the same commands, on Apache ZooKeeper 3.9."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys

import pytest

from kafkapy.tools.zookeeper.client import EPHEMERAL, PERSISTENT, ZooKeeperClient
from kafkapy.tools.zookeeper.errors import ConnectError, ZooKeeperRequestError
from kafkapy.tools.zookeeper.replies import Event, EventKind, State
from tests.chaos_proxy import ChaosProxy
from tests.clients.legacy.installation import jars_of, java_command
from tests.harness.quorum_nodes import wait_until
from tests.ports import free_port
from tests.tools.tool_host import run_ours
from tests.zookeeper.real_zookeeper import POM, RELEASE, RealZooKeeper

pytestmark = pytest.mark.peer

# The commands of one shell. The last ones delete what the others have created.
NODES = """
ls /
create /t hello
create -s /t/s x
create -e /t/e y
create -s -e /t/se
create -c /t/c
create -t 10000000 /t/ttl data
create -s -t 10000000 /t/ttls data
create /t/n
create /t hello
create /no/such x
create t
create
create -e -c /t/q
create -t -5 /t/q
create -t x /t/q
create -e -t 5 /t/q
create -c -t 5 /t/q
create -q /t/q
create /t/e/child
create /t/acl v world:anyone:r
create /t/wrong v auth:
create "/t/with space" "two words"
create ""
create /a//b
create /a/../b
create /
get '/t/with space'
get /t
get -s /t
get -b -s /t
get -x /t
get /t/n
get -b /t/n
get /none
get
stat /t
stat /none
stat
ls /t
ls -s /t
ls -R /t
ls -sR /t
ls -q /t
ls /none
ls
ls /t/
ls t
set /t world
set -s /t again
set -v 77 /t x
set -v 2 /t ok
set /none x
set /t
set -b /t aGVsbG8=
get /t
getAcl /t
getAcl -s /t
getAcl -x /t
getAcl /none
setAcl /t/n world:anyone:cdrwa,ip:127.0.0.1:d
getAcl /t/n
setAcl -s /t/n world:anyone:cr
setAcl -v 9 /t/n world:anyone:r
setAcl -R /t/c world:anyone:cdrwa
setAcl /t/n bad
setAcl /t/n
addauth digest me:secret
addauth
create /t/mine x auth::cdrwa
getAcl /t/mine
whoami
getEphemerals /x
getAllChildrenNumber /t
getAllChildrenNumber /none
getAllChildrenNumber
sync /t
sync /none
sync t
sync
delete /t
delete -v 5 /t/n
delete /none
delete
delete /
deleteall /t/c
deleteall -b 3 /t/ttl
deleteall /none
deleteall
rmr /t/ttls
get /t watch
delete /t/ttls 3
ls /t watch
stat /t watch
nonsense
history
redo 3
redo 900
printwatches
printwatches off
printwatches
printwatches on
deleteall /t
"""
WATCHES = """
create /w 1
get -w /w
stat -w /w
ls -w /w
removewatches -d /w
removewatches /w
removewatches -c /w
removewatches /none
addWatch /w
addWatch -m WRONG /w
addWatch
set /w 2
create /w/child
set /w/child 3
removewatches /w
addWatch -m PERSISTENT /w
set /w 3
set /w 4
delete /w/child
removewatches /w
stat -w /gone
create /gone
get -w /gone
delete /gone
deleteall /w
"""
QUOTAS = """
create /q data
listquota /q
listquota /none
listquota
delquota /q
setquota -n 5 /q
listquota /q
setquota -b 500 /q
setquota -N 5 -B 1000 /q
setquota -n x /q
setquota -n 0 /q
setquota -n 5 /none
setquota /q
create /q/one
create /q/two
setquota -n 1 /q
setquota -n 1 /q/one
setquota -n 1 /
delquota -n /q
delquota -b -n /q
listquota /q
delquota /q
listquota /q
deleteall /q
config
config -s
config -c
reconfig -add x
reconfig
reconfig -add 1 -members x
close
get /q
connect ADDRESS
ls /
quit
"""
SINGLE = ("get /none", "nonsense")
VARYING = (
    (re.compile(r"(Zxid = )0x[1-9a-f]\w*"), r"\1ZXID"),
    (re.compile(r"zxid: \d+"), "zxid: ZXID"),
    (re.compile(r"(time = )... ... \d\d \d\d:\d\d:\d\d (\S+) 20\d\d"), r"\1TIME \2"),
    (re.compile(r"ip: \S+\n|digest: me\n"), ""),  # in any order
)
EVENT_TITLE = re.compile(r"\n?WATCHER::\n")
EVENT = re.compile(r"\n?(WatchedEvent .*)\n")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RealZooKeeper(tmp_path_factory.mktemp("real")) as server:
        yield server


def theirs(server, *words):
    jars = jars_of(POM, f"zookeeper-{RELEASE}", f"-Dzookeeper.version={RELEASE}")
    log_off = server.directory / "no-log.properties"
    log_off.write_text("log4j.rootLogger=OFF\n")
    log = f"-Dlog4j.configuration=file:{log_off}"
    return [*java_command(), log, "-cp", f"{jars}/*", "org.apache.zookeeper.ZooKeeperMain", *words]


def ours(server, *words):
    return [sys.executable, "-m", "kafkapy", "zookeeper-shell", *words]


def normal(text):
    """Returns the output without what differs between two runs."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text


def printed(server, side, lines, *words):
    """Runs a shell with the lines as its input; returns its exit code, output, events and errors.

    Java prints events by a thread of their own, in two steps, so that another command's output may precede an event
    or separate it from its title.
    """
    environment = {**os.environ, "TZ": "UTC"}
    command = side(server, "-server", server.zookeeper, *words)
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    out, titles = EVENT_TITLE.subn("", normal(done.stdout))
    assert len(EVENT.findall(out)) == titles
    return done.returncode, EVENT.sub("", out).splitlines(), EVENT.findall(out), normal(done.stderr).splitlines()


@pytest.mark.parametrize("script", [NODES, WATCHES, QUOTAS], ids=["nodes", "watches", "quotas"])
def test_a_series_of_commands_prints_the_same(server, script):
    lines = script.strip().replace("ADDRESS", server.zookeeper) + "\n"
    expected = printed(server, theirs, lines)
    found = printed(server, ours, lines)
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("command", SINGLE)
def test_a_single_command_prints_the_same_and_ends_with_the_same_code(server, command):
    assert printed(server, ours, "", *command.split()) == printed(server, theirs, "", *command.split())


def test_a_client_keeps_its_session_and_watches_when_its_connection_breaks(server):
    events: list[Event] = []
    port = int(server.zookeeper.rpartition(":")[2])
    with (
        ChaosProxy(free_port(), port, seed=1) as proxy,
        ZooKeeperClient(f"127.0.0.1:{proxy.port}/below", on_event=events.append) as client,
        ZooKeeperClient(server.zookeeper) as other,
    ):
        other.create("/below")
        client.create("/one", b"", flags=EPHEMERAL)
        client.get("/one", watches=True)
        client.exists("/two", watches=True)
        client.add_watch("/", PERSISTENT)
        proxy.sever()
        wait_until(lambda: [event.state for event in events].count(State.SYNC_CONNECTED) == 2, "not connected again")
        assert client.ephemerals("/") == ["/one"]
        other.set("/below/one", b"x")
        other.create("/below/two")
        client.sync("/")
        changes = {(event.kind, event.path) for event in events if event.path is not None}
        assert changes == {
            (EventKind.NODE_DATA_CHANGED, "/one"),
            (EventKind.NODE_CREATED, "/two"),
            (EventKind.NODE_CHILDREN_CHANGED, "/"),
        }
        client.close()
        assert events[-1].state == State.CLOSED
        assert other.delete_all("/below")


def test_a_request_on_a_lost_connection_fails_and_a_missing_server_is_named(server):
    with ZooKeeperClient(server.zookeeper) as client:
        pass
    with pytest.raises(ZooKeeperRequestError, match="KeeperErrorCode = ConnectionLoss for /x"):
        client.get("/x")
    absent = ZooKeeperClient(f"127.0.0.1:{free_port()}")
    with pytest.raises(ConnectError, match="Connection refused"):
        absent.connect(patience_s=0)


def test_a_program_with_more_than_a_thousand_descriptors_has_a_session(server):
    above = 1_100  # select.select refuses descriptors from 1,024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * above), hard))
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(above)]
    try:
        with ZooKeeperClient(server.zookeeper) as client:
            assert "zookeeper" in client.children("/")[0]
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_security_migration_gives_the_nodes_to_their_creator_and_to_everybody_again(server):
    def migrate(*words):
        return run_ours("zookeeper-security-migration", "--zookeeper.connect", f"{server.zookeeper}/secured", *words)

    def acls(path):
        return [f"{identity.scheme} {permissions}" for permissions, identity in client.get_acl(path)[0]]

    with ZooKeeperClient(server.zookeeper) as other, ZooKeeperClient(f"{server.zookeeper}/secured") as client:
        other.create("/secured")
        for path in ("/consumers/g", "/brokers/topics/t", "/config/users/u"):
            client.ensure(path)
        assert migrate("--zookeeper.acl", "secure").err.startswith("zookeeper.acl secure needs the identity")
        assert migrate("--zookeeper.acl", "safe").err.startswith("zookeeper.acl is safe")
        digest = ("--digest", "kafka:secret")
        checked = migrate("--zookeeper.acl", "secure", *digest, "--enable.path.check")
        assert "These paths do not exist: /admin, /cluster" in checked.err
        assert migrate("--zookeeper.acl", "secure", *digest) == (0, "", "")
        assert acls("/brokers/topics/t") == ["digest 31", "world 1"]
        assert acls("/consumers") == acls("/consumers/g") == ["world 31"]
        with pytest.raises(ZooKeeperRequestError, match="NoAuth for /config/users/u"):
            client.get("/config/users/u")
        refused = migrate("--zookeeper.acl", "unsecure", "--digest", "kafka:wrong")
        assert "may not change them" in refused.err or "NoAuth" in refused.err
        assert migrate("--zookeeper.acl", "unsecure", *digest) == (0, "", "")
        assert acls("/config/users/u") == ["world 31"]
        assert other.delete_all("/secured")
