"""The functions that kafkapy looks up by name in the shared objects of other wheels."""

import re
import subprocess
import sys

import pytest

from kafkapy._core.bytes.codec_functions import LIBRARIES, load_functions, missing_codecs, shared_object
from tests.broker_process import BrokerProcess


@pytest.mark.parametrize("codec", LIBRARIES)
def test_installed_modules_contain_every_function(codec):
    """Fails when a new version of lz4, zstandard or Python no longer exports what the fast path calls."""
    assert load_functions(codec, shared_object(LIBRARIES[codec][1]))


def test_no_codec_is_missing():
    assert missing_codecs() == []


@pytest.mark.parametrize("codec", LIBRARIES)
def test_a_library_without_the_functions_is_not_used(codec):
    try:
        assert not load_functions(codec, "libm.so.6")
        assert not load_functions(codec, "no such library")
    finally:
        assert load_functions(codec, shared_object(LIBRARIES[codec][1]))


def test_a_module_is_found_without_importing_its_package():
    program = (
        "import sys; from kafkapy._core.bytes.codec_functions import shared_object;"
        "print(shared_object('zstandard._cffi'), shared_object('zstandard.absent'), 'zstandard' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found, absent, is_imported = done.stdout.split()
    assert found.endswith(".so")
    assert (absent, is_imported) == ("None", "False")


class BrokerWithoutLz4(BrokerProcess):
    def command(self) -> list[str]:
        program = (
            "import runpy; from kafkapy._core.bytes import codec_functions;"
            "codec_functions.LIBRARIES[3] = ('lz4', 'lz4.absent', 'libabsent.so.1');"
            "runpy.run_module('kafkapy', run_name='__main__', alter_sys=True)"
        )
        executable, *arguments = super().command()
        return [executable, "-c", program, *arguments[arguments.index("kafkapy") + 1 :]]


def test_a_broker_names_a_missing_codec_and_the_effect_once(tmp_path):
    with BrokerWithoutLz4(tmp_path) as broker:
        found = re.findall("WARN.* lack functions of (.*) that .* slower path", broker.log())
    assert found == ["lz4"]
