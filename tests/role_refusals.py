"""Configurations that do not fit the node's roles, and what Apache Kafka 4.3 says about each."""

from __future__ import annotations

SERVERS = "controller.quorum.bootstrap.servers"
VOTERS = "controller.quorum.voters"
NAMES = "controller.listener.names"
ROLES = "process.roles"

BOTH = {
    ROLES: "broker,controller",
    "node.id": "1",
    SERVERS: "localhost:9093,localhost:9193",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    NAMES: "CONTROLLER",
}
BROKER = {
    ROLES: "broker",
    "node.id": "2",
    SERVERS: "localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092",
    NAMES: "CONTROLLER",
}
CONTROLLER = {
    ROLES: "controller",
    "node.id": "3",
    SERVERS: "localhost:9093",
    "listeners": "CONTROLLER://localhost:9093",
    NAMES: "CONTROLLER",
}
# Configurations that are accepted, by name.
ACCEPTED = {
    "both": BOTH,
    "broker": BROKER,
    "controller": CONTROLLER,
    "static voters with both": {**BOTH, SERVERS: "", VOTERS: "1@localhost:9093,2@[::1]:9093"},
    "static voters with a broker": {**BROKER, SERVERS: "", VOTERS: "1@localhost:9093"},
    "static voters with a controller": {**CONTROLLER, VOTERS: "3@h:1"},
    "two controller listeners": {
        **CONTROLLER,
        "listeners": "CONTROLLER://localhost:9093,SECOND://localhost:9094",
        NAMES: "CONTROLLER,SECOND",
    },
    "controller advertised": {
        **BOTH,
        "advertised.listeners": "PLAINTEXT://broker:9092,CONTROLLER://controller:9093",
    },
    "every interface": {**BOTH, "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://0.0.0.0:9093"},
    "a role twice": {**BROKER, ROLES: "broker,broker"},
    "automatic join": {**CONTROLLER, "controller.quorum.auto.join.enable": "true"},
    "names in lower case": {
        **BROKER,
        "listeners": "plaintext://localhost:9092",
        "inter.broker.listener.name": "plaintext",
    },
}
_SUBSET = "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
_UNROUTABLE = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
_NO_QUORUM = (
    "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers "
    "or controller.quorum.voters must contain a parseable set of controllers."
)
_INTER_BROKER = (
    "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on "
    "currently configured listeners are "
)
_PARSE_VOTERS = "Each entry should be in the form `{id}@{host}:{port}`."
_PARSE_SERVERS = 'Each entry should be in the form "{host}:{port}"'
# Name -> (configuration, Kafka's text).
REFUSED = {
    "broker without a quorum": ({**BROKER, SERVERS: ""}, _NO_QUORUM),
    "controller without a quorum": ({**CONTROLLER, SERVERS: ""}, _NO_QUORUM),
    "broker among the voters": (
        {**BROKER, VOTERS: "1@h:1,2@h:2"},
        "If process.roles contains just the 'broker' role, the node id 2 must not be included in the set of voters "
        "controller.quorum.voters=Set(1, 2)",
    ),
    "controller not among the voters": (
        {**CONTROLLER, VOTERS: "1@h:1,2@h:2"},
        "If process.roles contains the 'controller' role, the node id 3 must be included in the set of voters "
        "controller.quorum.voters=Set(1, 2)",
    ),
    "both, not among the voters": (
        {**BOTH, VOTERS: "2@h:2"},
        "If process.roles contains the 'controller' role, the node id 1 must be included in the set of voters "
        "controller.quorum.voters=Set(2)",
    ),
    "broker with a controller listener": (
        {**BROKER, "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"},
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running "
        "KRaft with just the broker role",
    ),
    "broker without the controllers' listener": (
        {key: value for key, value in BROKER.items() if key != NAMES},
        'Missing required configuration "controller.listener.names" which has no default value.',
    ),
    "controller without a node id": (
        {key: value for key, value in CONTROLLER.items() if key != "node.id"},
        'Missing required configuration "node.id" which has no default value.',
    ),
    "controllers' listener without a protocol": (
        {**BROKER, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        "Controller listener with name CONTROLLER defined in controller.listener.names not found in "
        "listener.security.protocol.map  (an explicit security mapping for each controller listener is required if "
        "listener.security.protocol.map is non-empty, or if there are security protocols other than PLAINTEXT in use)",
    ),
    "broker that joins the voters": (
        {**BROKER, "controller.quorum.auto.join.enable": "true"},
        "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' role.",
    ),
    "controller with a broker's listener": (
        {**CONTROLLER, "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"},
        "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
        "process.roles=controller",
    ),
    "controller with its listener between brokers": (
        {**CONTROLLER, "inter.broker.listener.name": "CONTROLLER"},
        "controller.listener.names must not contain an explicitly set inter.broker.listener.name configuration value "
        "when process.roles=controller'",
    ),
    "both without a controller listener": (
        {**BOTH, "listeners": "PLAINTEXT://localhost:9092"},
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when "
        "running the KRaft controller role",
    ),
    "a controller listener that is missing": (
        {**BOTH, NAMES: "CONTROLLER,SECOND"},
        "controller.listener.names must only contain values appearing in the 'listeners' configuration when running "
        "the KRaft controller role",
    ),
    "all listeners are the controller's": (
        {**BOTH, NAMES: "CONTROLLER,PLAINTEXT"},
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
    ),
    "listener between brokers is not advertised": (
        {
            **BOTH,
            "listeners": "INSIDE://localhost:9092,OUTSIDE://localhost:9091,CONTROLLER://localhost:9093",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "advertised.listeners": "OUTSIDE://localhost:9091",
            "inter.broker.listener.name": "INSIDE",
        },
        f"{_INTER_BROKER}OUTSIDE",
    ),
    "no listener between brokers": (
        {
            **BROKER,
            "listeners": "INSIDE://localhost:9092",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        },
        f"{_INTER_BROKER}INSIDE",
    ),
    "listener between brokers without a protocol": (
        {**BROKER, "inter.broker.listener.name": "INSIDE"},
        "Listener with name INSIDE defined in inter.broker.listener.name not found in listener.security.protocol.map.",
    ),
    "listener and protocol between brokers": (
        {**BROKER, "inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    ),
    "advertised listener that is not listened on": (
        {**BROKER, "advertised.listeners": "PLAINTEXT://h:1,SSL://h:2"},
        f"{_SUBSET}Found PLAINTEXT,SSL. The valid options based on the current configuration are PLAINTEXT",
    ),
    "broker advertised on every interface": ({**BROKER, "listeners": "PLAINTEXT://0.0.0.0:9092"}, _UNROUTABLE),
    "controller advertised on every interface": (
        {**CONTROLLER, "advertised.listeners": "CONTROLLER://0.0.0.0:9093"},
        _UNROUTABLE,
    ),
    "voter without an address": (
        {**BOTH, VOTERS: "1"},
        f"Invalid configuration value for controller.quorum.voters. {_PARSE_VOTERS}",
    ),
    "voter without a number": ({**BOTH, VOTERS: "x@h:1"}, "Failed to parse voter ID as an integer from x"),
    "voter without a port": (
        {**BOTH, VOTERS: "1@h"},
        f"Failed to parse host name from entry 1@h for the configuration controller.quorum.voters. {_PARSE_VOTERS}",
    ),
    "controller without a port": (
        {**BROKER, SERVERS: "localhost"},
        "Failed to parse host name from localhost for the configuration controller.quorum.bootstrap.servers. "
        f"{_PARSE_SERVERS}",
    ),
    "voter with a port too large": ({**BOTH, VOTERS: "1@h:65536"}, "port out of range:65536"),
    "unknown role": (
        {**BROKER, ROLES: "broker,janitor"},
        "Invalid value janitor for configuration process.roles: String must be one of: broker, controller",
    ),
}
