"""The public names of `kafkapy.client`, which are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kafkapy.client


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    for name in kafkapy.client.__all__:
        assert getattr(kafkapy.client, name).__name__ == name
    assert set(kafkapy.client.__all__) <= set(dir(kafkapy.client))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'kafkapy\.client' has no attribute 'Consumers'"):
        _ = kafkapy.client.Consumers


def test_a_connection_is_imported_without_the_clients() -> None:
    code = "import sys, kafkapy.client.connection; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"kafkapy.client.producer", "kafkapy.client.consumer", "kafkapy.client.admin"} & set(loaded)
