"""Policies like an administrator's, which refuse by the topic's name or the value of retention.ms."""

from __future__ import annotations

from typing import Any, ClassVar

from kafkapy.controller.policy import AlterConfigRequest, CreateTopicRequest, PolicyViolation
from kafkapy.errors import ApiError, Error


class RecordingPolicy:
    """A policy that records requests in `seen` and calls of configure and close in `calls`."""

    seen: ClassVar[list[Any]] = []
    calls: ClassVar[list[str]] = []

    def __init__(self) -> None:
        type(self).seen = []
        type(self).calls = []

    def configure(self, configs: dict[str, str]) -> None:
        self.calls.append(f"configure {configs.get('my.key')}")

    def close(self) -> None:
        self.calls.append("close")


def object_to(word: str) -> None:
    if word == "violation":
        raise PolicyViolation("not like this")
    if word == "api":
        raise ApiError(Error.INVALID_TOPIC_EXCEPTION, "another error")
    if word == "broken":
        raise LookupError("broken")


class NamePolicy(RecordingPolicy):
    def validate(self, request: CreateTopicRequest) -> None:
        self.seen.append(request)
        object_to(request.topic.partition("-")[0])


class RetentionPolicy(RecordingPolicy):
    WORDS: ClassVar[dict[str | None, str]] = {"666": "violation", "667": "broken", "668": "api"}

    def validate(self, request: AlterConfigRequest) -> None:
        self.seen.append(request)
        object_to(self.WORDS.get(request.configs.get("retention.ms"), ""))


class WithoutValidate:
    def configure(self, configs: dict[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


class FailsToConfigure(RetentionPolicy):
    def configure(self, configs: dict[str, str]) -> None:
        raise LookupError("no my.key")

    def close(self) -> None:
        raise LookupError("cannot close")
