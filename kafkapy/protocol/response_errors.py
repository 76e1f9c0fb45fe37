"""Finds an error in a response of any API, whether it concerns the whole response or one of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy._core.bytes.message import Message

if TYPE_CHECKING:
    from kafkapy.errors import Error


def part_with_error(response: Message, error: Error) -> Message | None:
    """Returns the response itself if its `error_code` is `error`; otherwise the first element of one of its arrays with
    this `error_code`, or None if no element has it.

    Most APIs report errors for each topic, resource or entity, as elements of arrays. Arrays inside of these elements
    are not searched.
    """
    if getattr(response, "error_code", 0) == error:
        return response
    for name in response.FIELDS:
        value = getattr(response, name)
        if isinstance(value, list | tuple):
            for part in value:
                if isinstance(part, Message) and getattr(part, "error_code", 0) == error:
                    return part
    return None
