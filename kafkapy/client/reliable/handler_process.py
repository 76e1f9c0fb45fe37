"""The child process in which an IsolatedHandler runs the application's function: `python -m
kafkapy.client.reliable.handler_process MODULE:FUNCTION`.

It reads deliveries from standard input and writes results to the pipe that was standard output, each as a length of
four bytes and a pickled value. What the handler prints goes to standard error.
"""

from __future__ import annotations

import os
import pickle
import sys
from importlib import import_module
from typing import Any, BinaryIO

from kafkapy.client.reliable.chain_headers import error_text
from kafkapy.client.reliable.records import Failure, checked_outputs
from kafkapy.errors import ConfigError

LENGTH_BYTES = 4


def load_handler(reference: str) -> Any:
    """Returns the function that `module:function` names. Raises ConfigError if it cannot be imported."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ConfigError(f"{reference} does not name a handler: MODULE:FUNCTION is expected")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The handler {reference} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError(f"The handler {reference} is not a function")
    return found


def read_frame(stream: BinaryIO) -> bytes | None:
    """Returns the body of the next frame, without the length that precedes it; None at the end of the stream."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return body if len(body) == size else None


def write_frame(stream: BinaryIO, body: bytes) -> None:
    stream.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    stream.flush()


def outcome(handler: Any, delivery: Any) -> tuple[str, Any]:
    """Calls the handler for a delivery; returns a pair: the kind and the content of the result.

    If the handler returns outputs, the kind is "outputs", and the content is the list of the Outputs, as tuples. If the
    handler raises Failure, the kind is "failure". If it raises another exception or returns anything else, the kind is
    "error". In these two cases, the content is an ErrorText.
    """
    try:
        return "outputs", [tuple(each) for each in checked_outputs(handler(delivery))]
    except Failure as error:
        return "failure", error_text(error)
    except Exception as error:
        return "error", error_text(error)


def main(reference: str) -> None:
    """Imports the handler that `module:function` names, and handles deliveries until standard input ends.

    Writes the frame "ready", and then a frame with the outcome of each delivery, to the original standard output.
    """
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    handler = load_handler(reference)
    write_frame(results, b"ready")
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        write_frame(results, pickle.dumps(outcome(handler, pickle.loads(frame))))


if __name__ == "__main__":
    main(sys.argv[1])
