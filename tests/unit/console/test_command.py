"""The command line of the console refuses a login that would let everybody in."""

from __future__ import annotations

import pytest

from kafkapy.console.command import main

ADDRESS = ("--listener", "127.0.0.1:0", "--login", "cluster")


@pytest.mark.parametrize("protocol", ["", "security.protocol=PLAINTEXT", "security.protocol=SSL"])
def test_a_login_with_the_clusters_credentials_needs_sasl(protocol, tmp_path, capsys):
    config = tmp_path / "client.properties"
    config.write_text(protocol)
    arguments = ["--bootstrap-server", "localhost:1", "--command-config", str(config), *ADDRESS]
    assert main(arguments) == 1
    assert "every name and password would be accepted" in capsys.readouterr().err


def test_the_configuration_of_a_cluster_with_a_name_counts_too(tmp_path, capsys):
    config = tmp_path / "client.properties"
    config.write_text("bootstrap.servers=localhost:1\n")
    assert main(["--cluster", f"live={config}", *ADDRESS]) == 1
    assert "needs a security.protocol with SASL" in capsys.readouterr().err
