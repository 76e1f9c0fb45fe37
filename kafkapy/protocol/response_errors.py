"""Finds an error in a response of any API, whether it concerns the whole response or one of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy._core.bytes.message import Message

if TYPE_CHECKING:
    from kafkapy.errors import Error


def part_with_error(response: Message, error: Error) -> Message | None:
    """Returns the response itself or the first of its parts that has this `error_code`; None if none has it.

    The parts are the elements of the response's arrays: most APIs report errors for each topic, resource or entity.
    Arrays inside of these elements are not searched.
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
