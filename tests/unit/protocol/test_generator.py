"""The generated files correspond to the definitions, and generating them again changes nothing."""

import ast

import pytest

from kafkapy.protocol import generator
from kafkapy.protocol.generator_notation import read_definitions
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse


@pytest.fixture(scope="module")
def files():
    return generator.generate(read_definitions(generator.DEFINITIONS))


def test_files_on_disk_are_up_to_date(files):
    for name, content in files.items():
        assert (generator.MESSAGES / name).read_text() == content, f"{name} is old: build again"


def test_the_gate_s_versions_are_up_to_date():
    definitions = read_definitions(generator.DEFINITIONS)
    assert generator.GATE_VERSIONS.read_text() == generator.gate_versions(definitions), "old: build again"


def test_first_versions_are_those_of_the_definitions():
    assert ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID == ProduceResponse.FIRST_VERSION_WITH_TOPIC_ID == 13
    assert ProduceRequest.FIRST_VERSION_WITH_ZSTD == 7
    assert FetchRequest.FIRST_VERSION_WITH_CURRENT_LEADER_EPOCH == 9
    assert not hasattr(FetchRequest, "FIRST_VERSION_WITH_MIN_BYTES")  # in every version
    assert JoinGroupRequest.FIRST_VERSION_WITH_GROUP_INSTANCE_ID == 5


def test_plain_modules_are_python(files):
    for name, content in files.items():
        if name.endswith((".py", ".pyi")):
            ast.parse(content)


def test_hot_messages_are_compiled(files):
    compiled = {name.removesuffix(".pyx") for name in files if name.endswith(".pyx")}
    assert compiled == generator.COMPILED
    for name in compiled:
        assert f"{name}.pyi" in files
        assert f"{name}.py" not in files


def test_second_run_leaves_files_alone():
    before = {path: path.stat().st_mtime_ns for path in generator.MESSAGES.glob("*.py*")}
    generator.main()
    assert {path: path.stat().st_mtime_ns for path in generator.MESSAGES.glob("*.py*")} == before
