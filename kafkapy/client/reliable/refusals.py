"""Finds the records that the brokers refuse, by transactions of one record each, so that they become dead letters."""

from __future__ import annotations

from collections.abc import Hashable

from kafkapy.client.reliable.relay import RefusedRecords, is_refusal


class Refusals:
    """The errors with which the brokers have refused single records.

    A relay whose transaction was refused continues with transactions of one record (`Relay.is_single`). The service
    calls `tries` with the record of each of these transactions. If such a transaction is refused too, its record is the
    cause. At the record's next attempt `error_of` then returns the error, so that the service sends a dead letter
    instead.
    """

    def __init__(self) -> None:
        self._tried: Hashable = None
        self._errors: dict[Hashable, Exception] = {}
        self._used: list[Hashable] = []  # the records of the present transaction whose errors the service has

    def begin(self) -> None:
        """Forgets the record that `tries` has stored for the last transaction; called when a transaction begins."""
        self._tried = None
        self._used.clear()

    def tries(self, record: Hashable) -> None:
        """Stores `record`, the only record of the present transaction, so that `aborted` knows which record was
        refused.

        `record` is any value that identifies the record, such as its partition and offset.
        """
        self._tried = record

    def error_of(self, record: Hashable) -> Exception | None:
        """Returns the error with which the brokers have refused the record that this value identifies.

        Returns None if they have not refused the record. Otherwise the present transaction has to make the record a
        dead letter.
        """
        error = self._errors.get(record)
        if error is not None:
            self._used.append(record)
        return error

    def committed(self) -> None:
        """Is called after a transaction was committed, or after a step without one.

        Forgets the errors of the records that have become dead letters in this transaction. The other refused records
        were not attempted again yet.
        """
        for record in self._used:
            self._errors.pop(record, None)
        self._used.clear()

    def aborted(self, error: Exception) -> None:
        """Stores `error` if the transaction had only one record and `error` is the brokers' refusal of it.

        Raises RefusedRecords if the brokers have refused this record's dead letter as well.
        """
        if self._tried is None or not is_refusal(error):
            return
        if self._tried in self._errors:
            raise RefusedRecords(f"The record {self._tried} cannot become a dead letter: {error}") from error
        self._errors[self._tried] = error
