"""The errors of serializers that use a schema registry."""

from __future__ import annotations

from kafkapy.errors import KafkapyError


class RegistryFailure(KafkapyError):
    """A request that the registry has refused, or that did not reach it.

    `status` is the HTTP status and `code` the registry's number of the error; both are -1 without a response.
    """

    def __init__(self, message: str, status: int = -1, code: int = -1) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class SchemaMismatch(KafkapyError, ValueError):
    """A value that does not fit its schema."""


class WrongFrame(KafkapyError, ValueError):
    """Bytes that do not begin with the header that the serializers of a schema registry write."""


class LibraryMissing(KafkapyError, ImportError):
    """A library of the extra `schemas` that is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(f"{library} is not installed; pip install 'kafkapy[schemas]' installs it")
