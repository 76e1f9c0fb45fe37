"""The check that a broker can be reached, and its errors."""

from __future__ import annotations

import pytest

from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.option import ToolError
from tests.ports import free_port


def test_every_server_is_named_with_its_reason():
    first, second = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with pytest.raises(ToolError) as raised:
        await_broker({"bootstrap.servers": f"{first}, {second}"}, 0)
    assert str(raised.value) == (
        "Connection to the bootstrap servers could not be established "
        f"({first}: Connection refused; {second}: Connection refused)."
    )


@pytest.mark.parametrize("server", ["localhost", "localhost:", "localhost:kafka", ":9092"])
def test_an_address_without_a_port_says_what_is_expected(server: str):
    with pytest.raises(ToolError) as raised:
        await_broker({"bootstrap.servers": server}, 0)
    assert str(raised.value) == f"Invalid url in bootstrap.servers: {server} (expected HOST:PORT)"
