"""The records that the brokers refuse: found by transactions of one record, and made dead letters afterwards."""

from __future__ import annotations

from collections.abc import Hashable

from kafkapy.client.reliable.relay import RefusedRecords, is_refusal


class Refusals:
    """The errors with which the brokers have refused single records.

    A relay whose transaction was refused continues with transactions of one record (`Relay.is_single`). The service
    calls `tries` with that record. If this transaction is refused too, `error_of` returns the error at the record's
    next attempt, so that the service sends a dead letter instead.
    """

    def __init__(self) -> None:
        self._tried: Hashable = None
        self._errors: dict[Hashable, Exception] = {}

    def begin(self) -> None:
        """Forgets the record that `tries` has stored for the last transaction; called when a transaction begins."""
        self._tried = None

    def tries(self, record: Hashable) -> None:
        """Stores the only record of the transaction; `record` is any value that identifies it, such as its partition
        and offset.
        """
        self._tried = record

    def error_of(self, record: Hashable) -> Exception | None:
        """Returns the error with which the brokers have refused the record that this value identifies.

        Returns None if they have not refused the record.
        """
        return self._errors.get(record)

    def committed(self) -> None:
        """Is called after a transaction was committed: forgets the errors, because the refused records have become dead
        letters.
        """
        self._errors.clear()

    def aborted(self, error: Exception) -> None:
        """Stores `error` if the transaction had only one record and `error` is the brokers' refusal of it.

        Raises RefusedRecords if the brokers have refused this record's dead letter as well.
        """
        if self._tried is None or not is_refusal(error):
            return
        if self._tried in self._errors:
            raise RefusedRecords(f"The record {self._tried} cannot become a dead letter: {error}") from error
        self._errors[self._tried] = error
