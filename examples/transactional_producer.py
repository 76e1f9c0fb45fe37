"""Sends 100 records in a transaction: a reader with isolation.level=read_committed sees all of them or none."""

from __future__ import annotations

from example_support import run

from kafkapy.client import Producer
from kafkapy.errors import ApiError, Error

# After these errors another producer has taken over, or the order of records is lost: the producer must be closed.
FATAL = (
    Error.PRODUCER_FENCED,
    Error.INVALID_PRODUCER_EPOCH,
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def main(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"writer-of-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        try:
            for number in range(100):
                producer.send(topic, str(number), key=str(number))
            producer.commit_transaction()
        except ApiError as error:
            if error.error in FATAL:
                raise
            producer.abort_transaction()
            print(f"aborted: {error}")
        else:
            print("committed 100 records")


if __name__ == "__main__":
    run(main, __doc__, topic="example-transaction")
