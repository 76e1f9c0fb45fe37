"""Reports records that are missing, as an error or as a warning, depending on `failOnDataLoss`."""

from __future__ import annotations

import logging

from kafkapy.errors import KafkapyError

log = logging.getLogger("kafkapy.spark")

_REASON = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed."
)


class DataLossError(KafkapyError, RuntimeError):
    """Raised if records that a query has to read are missing, and the option failOnDataLoss is true."""


def report_loss(what: str, *, fails: bool) -> None:
    """Raises DataLossError if `fails`, and logs a warning otherwise. `what` says what was lost, as a clause."""
    if fails:
        raise DataLossError(
            f"{what}, some data may have been missed. {_REASON} If you don't want your query to fail on such cases, "
            'set the source option "failOnDataLoss" to "false".'
        )
    log.warning("%s, some data may have been missed. %s", what, _REASON)
