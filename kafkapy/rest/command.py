"""The tool `kafkapy rest`: a REST proxy with Confluent's HTTP interfaces."""

from __future__ import annotations

from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.http import settings as http_settings
from kafkapy.http.command_line import Configuration, options
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, ToolError
from kafkapy.tools.tool import run_tool

REST_LISTENER = "http://127.0.0.1:8082"
# The prefixes of the clients' keys: of all clients, and of one kind.
CLIENT_PREFIX = "client."
PRODUCER_PREFIX, CONSUMER_PREFIX, ADMIN_PREFIX = "producer.", "consumer.", "admin."
# The keys of the proxy, with their defaults; those of the listener are in kafkapy.http.settings.
KEYS = {
    "schema.registry.url": "",
    "schema.registry.basic.auth.user.info": "",
    "consumer.instance.timeout.ms": "300000",
    "consumer.request.max.bytes": "67108864",
    "consumer.instances.max": "200",
}
REST_EXTRA_MISSING = "this program needs the libraries of an extra: pip install 'kafkapy[rest]' ({})"


def run(arguments: Arguments) -> int:
    """Runs a REST proxy until SIGINT or SIGTERM; returns the exit code 0."""
    prefixes = (CLIENT_PREFIX, PRODUCER_PREFIX, CONSUMER_PREFIX, ADMIN_PREFIX)
    configuration = Configuration(arguments, KEYS, prefixes)
    settings = http_settings.read_settings(configuration.values, REST_LISTENER)
    await_broker(configuration.of_clients(CLIENT_PREFIX))
    try:
        from kafkapy.rest.process import serve_rest
    except ModuleNotFoundError as error:
        raise ToolError(REST_EXTRA_MISSING.format(error)) from None
    serve_rest(
        settings,
        producer=configuration.of_clients(CLIENT_PREFIX, PRODUCER_PREFIX),
        consumer=configuration.of_clients(CLIENT_PREFIX, CONSUMER_PREFIX),
        admin=configuration.of_clients(CLIENT_PREFIX, ADMIN_PREFIX),
        registry=_registry(configuration),
        most_consumers=configuration.number("consumer.instances.max"),
        idle_s=configuration.number("consumer.instance.timeout.ms") / 1000,
        largest_response=configuration.number("consumer.request.max.bytes"),
    )
    return 0


def _registry(configuration: Configuration) -> Any:
    """Returns the client of the schema registry; None if its address is not configured.

    Raises ConfigError if the user's information is not USER:PASSWORD.
    """
    from kafkapy.client.schema import RegistryClient

    url = configuration.values["schema.registry.url"]
    user, separator, password = configuration.values["schema.registry.basic.auth.user.info"].partition(":")
    if user and not separator:
        raise ConfigError("schema.registry.basic.auth.user.info: USER:PASSWORD is expected")
    return RegistryClient(url, user=user, password=password) if url else None


TOOL = Tool(
    name="rest",
    description="This program is a REST proxy with Confluent's HTTP interfaces: version 2 for producers and consumers, "
    "and the clusters, topics and records of version 3.",
    run=run,
    options=options(REST_LISTENER, "Confluent's REST proxy"),
    examples=(
        Example("Serve a proxy on the default port", "--bootstrap-server localhost:9092"),
        Example(
            "Use a schema registry",
            "--bootstrap-server localhost:9092 --property schema.registry.url=http://localhost:8081",
        ),
    ),
    needs_arguments=False,
)


def main(arguments: list[str]) -> int:
    """Runs the tool and returns its exit code."""
    return run_tool(TOOL, arguments)
