"""The metrics of Java's producer and consumer that kafkapy's clients do not have, for docs/metrics.md and a test."""

from __future__ import annotations

_JAVA_THREADS = (
    "Java's consumer has it for the queues between its two threads; kafkapy's callers run the network's steps"
)

# Names of metrics -> the reason. All of them are metrics of a whole client.
LEFT_OUT = {
    (
        "commit-id",
        "version",
    ): "its value is a text, and the values here are numbers; see `kafkapy.__version__`",
    ("network-io-rate", "network-io-total"): (
        "compiled code reads and writes the sockets without counting the system calls; requests, responses and bytes "
        "are counted"
    ),
    ("successful-authentication-no-reauth-total",): (
        "it counts clients that cannot authenticate again on the same connection; kafkapy's can"
    ),
    ("failed-rebalance-rate-per-hour", "failed-rebalance-total"): (
        "a rebalance is counted when its assignment is applied; Java's consumer also counts each request to join that "
        "has to be repeated"
    ),
    (
        "application-event-queue-processing-time-avg",
        "application-event-queue-processing-time-max",
        "application-event-queue-size",
        "application-event-queue-time-avg",
        "application-event-queue-time-max",
        "application-events-expired-count",
        "background-event-queue-processing-time-avg",
        "background-event-queue-processing-time-max",
        "background-event-queue-size",
        "background-event-queue-time-avg",
        "background-event-queue-time-max",
        "time-between-network-thread-poll-avg",
        "time-between-network-thread-poll-max",
        "unsent-requests-queue-size",
        "unsent-requests-queue-time-avg",
        "unsent-requests-queue-time-max",
    ): _JAVA_THREADS,
}


def left_out_table() -> list[str]:
    """Returns the lines of the table in docs/metrics.md."""
    lines = ["| metric of Java's clients | why kafkapy's clients do not have it |", "|---|---|"]
    for names, reason in LEFT_OUT.items():
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {reason} |")
    return lines
