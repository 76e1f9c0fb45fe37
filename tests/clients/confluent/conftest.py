"""Fixtures of the tests of kafkapy.compat.confluent_kafka: each test runs with the original and ours."""

from __future__ import annotations

import itertools
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

_numbers = itertools.count(1)


class Library:
    """confluent-kafka, or ours in its place: the package and its submodules."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.top: Any = import_module(name)

    @property
    def is_ours(self) -> bool:
        return self._name.startswith("kafkapy")

    def module(self, name: str) -> ModuleType | Any:
        return import_module(f"{self._name}.{name}")


@pytest.fixture(params=["confluent_kafka", "kafkapy.compat.confluent_kafka"], ids=["original", "ours"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


@pytest.fixture
def ours() -> Library:
    return Library("kafkapy.compat.confluent_kafka")


@pytest.fixture
def topic(library: Library, bootstrap: str) -> str:
    """Returns the name of a new topic with three partitions."""
    admin_module = library.module("admin")
    name = f"confluent-{next(_numbers)}"
    admin = admin_module.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([admin_module.NewTopic(name, 3, 1)]).values():
        future.result(30)
    return name


@pytest.fixture
def group() -> str:
    return f"confluent-group-{next(_numbers)}"
