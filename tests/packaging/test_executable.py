"""The executable of this tree on a machine without Python: broker, clients from outside, tools by their names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy import __version__
from tests.clients.conftest import create_topic
from tests.clients.java_client import JavaClient
from tests.clients.kcat_client import KcatClient
from tests.clients.records import CODECS, assert_same, make_records
from tests.console_process import ConsoleProcess
from tests.packaging.bare_root import BareBroker, inside, make_bare_root
from tests.packaging.executable import build_folder, pack_one_file

LARGEST_MB = 40
PROGRAM = "/opt/kafkapy"
TOPIC = "from-outside"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.getuid() != 0, reason="a root directory of one's own takes root's right"),
]


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the executable of the tree by the recipe of `packaging/build`."""
    work = tmp_path_factory.mktemp("build")
    folder = build_folder(work)
    program = pack_one_file(folder, work / "one-file")
    shutil.rmtree(folder)
    return program


@pytest.fixture(scope="module")
def root(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("root")
    make_bare_root(root)
    (root / "opt").mkdir()
    shutil.copy(executable, root / PROGRAM.lstrip("/"))
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def broker(root: Path) -> Iterator[BareBroker]:
    with BareBroker(root, PROGRAM) as broker:
        yield broker


def run_inside(root: Path, *command: str, input: str | None = None) -> str:
    done = subprocess.run(inside(root, *command), input=input, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_no_python(root: Path):
    assert not [path for path in root.rglob("*python*") if "kafkapy" not in str(path)]


def test_its_size(executable: Path):
    assert executable.stat().st_size < LARGEST_MB * 1_000_000


def test_it_says_what_it_is(root: Path):
    first, second = run_inside(root, PROGRAM, "--version").splitlines()
    assert first.startswith(f"kafkapy {__version__} (")
    assert re.fullmatch(r"Python 3\.\d+\.\d+, Linux \w+, executable; core: .+", second)


def test_clients_from_outside(broker: BareBroker, kafka_43: Path, tmp_path: Path):
    """Serves kcat with every codec, then Java with one."""
    records = make_records(50, 2, text=True)
    clients = [(KcatClient(), codec) for codec in CODECS] + [(JavaClient(kafka_43, tmp_path, "java"), "zstd")]
    for number, (client, codec) in enumerate(clients):
        topic = f"{TOPIC}-{number}"
        create_topic(broker.bootstrap, topic, 2)
        client.produce(broker.bootstrap, topic, codec, records)
        received = client.consume(broker.bootstrap, topic, 2, len(records))
        assert_same(received, KcatClient().consume(broker.bootstrap, topic, 2, len(records)))
        assert sorted((each.key, each.value) for each in received) == sorted((each.key, each.value) for each in records)


def test_tools_by_their_names(broker: BareBroker, root: Path):
    made = run_inside(root, PROGRAM, "install-links", "/tools").split()
    assert "/tools/kafka-console-producer.sh" in made
    to_topic = ("--bootstrap-server", broker.bootstrap, "--topic", "typed")
    run_inside(root, "/tools/kafka-console-producer.sh", *to_topic, input="one\ntwo\n")
    consumer = ("/tools/kafka-console-consumer.sh", *to_topic, "--from-beginning", "--max-messages", "2")
    assert run_inside(root, *consumer).split() == ["one", "two"]


class BareConsole(ConsoleProcess):
    """The executable as a console in a bare root."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.root = root
        super().__init__(root / "console", *arguments)

    def command(self) -> list[str]:
        return inside(self.root, PROGRAM, "console", "--listener", f"localhost:{self.port}", *self.arguments)


def test_the_console(broker: BareBroker, root: Path):
    """Modules that the console does not use are left out of the executable; this shows that it does without them."""
    with BareConsole(root, "--bootstrap-server", broker.bootstrap, "--name", "test") as console:
        visitor = console.visitor()
        for path in ("/c/test/", "/c/test/topics", "/c/test/groups"):
            assert visitor.get(path).status == 200
        assert visitor.get("/static/console.css").status == 200
        assert visitor.get("/c/test/topics/absent").status == 404


def test_a_clean_stop_and_another_start(broker: BareBroker):
    assert broker.stop() == 0
    broker.start()
