"""The plan of a sandbox: roles, ports, configuration files."""

import pytest

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.startup_rules import warnings_about
from kafkapy.sandbox.layout import make_layout, read_layout, roles_of, write_layout

BOTH = ("broker", "controller")


@pytest.mark.parametrize(
    ("nodes", "controllers", "brokers", "expected"),
    [
        (None, None, None, [BOTH] * 3),
        (1, None, None, [BOTH]),
        (5, None, None, [BOTH] * 5),
        (None, 1, 2, [("controller",), ("broker",), ("broker",)]),
    ],
)
def test_nodes_are_both_unless_roles_are_separate(nodes, controllers, brokers, expected):
    assert roles_of(nodes, controllers, brokers) == expected


@pytest.mark.parametrize(
    ("nodes", "controllers", "brokers"), [(0, None, None), (3, 1, 1), (None, 1, None), (None, None, 2), (None, 0, 2)]
)
def test_numbers_that_make_no_cluster_are_refused(nodes, controllers, brokers):
    with pytest.raises(ValueError, match=r"node|together"):
        roles_of(nodes, controllers, brokers)


@pytest.mark.parametrize("roles", [[BOTH], [BOTH] * 3, [("controller",)] * 3 + [("broker",)] * 2])
def test_every_file_is_a_valid_configuration_of_one_cluster(tmp_path, roles):
    layout = make_layout(roles, 9092, {"num.partitions": "7"})
    configs = [BrokerConfig(layout.settings(node, tmp_path / "data")) for node in layout.nodes]
    assert [warnings_about(layout.settings(node, tmp_path / "data")) for node in layout.nodes] == [[]] * len(roles)
    assert [config.node_id for config in configs] == list(range(1, len(roles) + 1))
    assert [tuple(config.process_roles) for config in configs] == roles
    assert all(config["num.partitions"] == 7 for config in configs)
    assert len({tuple(config.bootstrap_controllers) for config in configs}) == 1
    brokers = sum("broker" in each for each in roles)
    assert all(config["offsets.topic.replication.factor"] == min(3, brokers) for config in configs)
    ports = [listener.port for config in configs for listener in config.listeners]
    assert sorted(ports) == list(range(9092, 9092 + len(ports)))
    assert layout.bootstrap == ",".join(f"localhost:{9092 + index}" for index in range(brokers))


def test_port_0_is_any_free_port():
    layout = make_layout([BOTH] * 3, 0, {})
    ports = [port for node in layout.nodes for port in (node.port, node.controller_port)]
    assert len(set(ports)) == 6
    assert 0 not in ports


def test_a_layout_is_read_as_it_was_written(tmp_path):
    assert read_layout(tmp_path) is None
    layout = make_layout([BOTH] * 2, 9092, {"a": "b"})
    write_layout(tmp_path, layout)
    assert read_layout(tmp_path) == (layout, {})
    write_layout(tmp_path, layout, {"socket": "/tmp/x"})
    assert read_layout(tmp_path) == (layout, {"socket": "/tmp/x"})


@pytest.mark.parametrize("text", ["", "{}", '{"nodes": 3}', "[]"])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "sandbox.json").write_text(text)
    with pytest.raises(ValueError, match=r"sandbox\.json cannot be read .*--fresh"):
        read_layout(tmp_path)
