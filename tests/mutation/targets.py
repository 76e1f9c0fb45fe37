"""The packages whose mutants are drawn, and the tests that run against the mutants of each."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Target(NamedTuple):
    """The tests for the sources below `path`: `narrow` run against every mutant, `wide` against those that survive
    `narrow`."""

    path: str
    narrow: tuple[str, ...]
    wide: tuple[str, ...]


# The longest path that contains a file decides. Below tests/unit, the tests named like the file always run first.
TARGETS = (
    Target(
        "kafkapy/storage",
        ("tests/unit/storage", "tests/property/test_log_model.py", "tests/property/test_log_cleaner.py"),
        (
            *("tests/property/test_future_replica.py", "tests/property/test_deletion_under_load.py"),
            *("tests/unit/replica", "tests/unit/server", "tests/crash", "tests/wire/test_message_sets.py"),
            *("tests/wire/test_batches_legacy.py", "tests/operations", "tests/tools/test_worked_examples.py"),
        ),
    ),
    Target(
        "kafkapy/replica",
        (
            *("tests/unit/replica", "tests/scenarios/test_watermark_trace.py"),
            *("tests/property/test_held_fetch_twin.py", "tests/unit/_core/gate/test_awaited_produce.py"),
        ),
        (
            *("tests/unit/server", "tests/property/test_gate_twin.py", "tests/crash/test_disk_failure.py"),
            *("tests/crash/test_broker_power_failure.py", "tests/clients/test_client_consumer.py", "tests/operations"),
        ),
    ),
    Target(
        "kafkapy/replica/share",
        (
            *("tests/unit/replica/share", "tests/property/test_share_window_twin.py"),
            *("tests/unit/server/handlers", "tests/unit/coordinator/share"),
        ),
        ("tests/wire/test_share_groups.py", "tests/clients/test_client_share_consumer.py", "tests/operations"),
    ),
    Target(
        "kafkapy/coordinator",
        ("tests/unit/coordinator", "tests/scenarios"),
        (
            *("tests/unit/server/handlers", "tests/wire/test_consumer_groups.py", "tests/clients/test_groups.py"),
            *("tests/wire/test_share_groups.py", "tests/wire/test_streams_groups.py"),
            *("tests/wire/test_bad_input_coordinators.py", "tests/clients/test_transactions.py"),
            *("tests/clients/test_consumer_groups.py", "tests/tools/test_worked_examples.py"),
        ),
    ),
    Target(
        "kafkapy/quorum",
        ("tests/unit/quorum", "tests/unit/controller", "tests/scenarios/test_controller_scenarios.py"),
        (
            *("tests/unit/metadata", "tests/unit/server", "tests/crash/test_metadata_power_failure.py"),
            *("tests/crash/test_broker_power_failure.py", "tests/crash/test_signals.py", "tests/tools"),
        ),
    ),
    Target(
        "kafkapy/client",
        ("tests/unit/client",),
        (
            *("tests/clients/test_client_producer.py", "tests/clients/test_client_consumer.py"),
            *("tests/clients/test_client_transactions.py", "tests/clients/test_client_admin.py"),
            *("tests/clients/test_client_asynchronous.py", "tests/clients/test_client_arrow.py"),
            *("tests/clients/test_client_share_consumer.py", "tests/clients/confluent/test_statistics.py"),
            *("tests/clients/test_chaos.py", "tests/clients/test_transactions_of_clients.py", "tests/tools"),
        ),
    ),
    Target(
        "kafkapy/client/reliable",
        ("tests/unit/client/reliable", "tests/reliable"),  # the latter run the services in threads of their own process
        ("tests/tools", "tests/console/test_redrive.py"),
    ),
    Target(
        "kafkapy/client/schema",
        ("tests/unit/client/schema", "tests/unit/registry", "tests/registry"),
        (
            *("tests/console/test_schemas.py", "tests/spark/test_registry_formats.py"),
            "tests/spark/test_registry_values.py",
        ),
    ),
    Target(
        "kafkapy/spark",
        ("tests/unit/spark",),
        (
            *("tests/spark/test_batch.py", "tests/spark/test_stream.py", "tests/spark/test_sink.py"),
            *("tests/spark/test_ranges.py", "tests/spark/test_stream_table.py", "tests/spark/test_submit.py"),
        ),
    ),
    Target(
        "kafkapy/_core/bytes",
        (
            *("tests/unit/_core/bytes", "tests/property/test_core_record_batch.py"),
            *("tests/property/test_core_message_set.py", "tests/property/test_core_arrow_batch.py"),
            *("tests/property/test_core_index.py", "tests/property/test_core_offset_map.py"),
            *("tests/property/test_core_crc32c.py", "tests/property/test_record_decompressor.py"),
            *("tests/property/test_messages.py", "tests/property/test_gate_twin.py", "tests/unit/storage"),
        ),
        (
            *("tests/property", "tests/unit/protocol", "tests/wire", "tests/unit/client"),
            *("tests/clients/test_client_producer.py", "tests/clients/test_client_arrow.py"),
        ),
    ),
    Target(
        "kafkapy/_core/reactor",
        (
            *("tests/unit/_core/reactor", "tests/unit/_core/tls", "tests/unit/_core/gate", "tests/unit/network"),
            "tests/property/test_core_timing_wheel.py",
        ),
        (
            "tests/wire/test_frames.py",
            "tests/wire/test_bad_input.py",
            "tests/wire/test_hostile_clients.py",
            "tests/operations",
        ),
    ),
    Target(
        "kafkapy/_core/tls",
        ("tests/unit/_core/tls",),
        (
            *("tests/unit/_core/reactor", "tests/unit/_core/client", "tests/wire/test_tls_hostile.py"),
            *("tests/security/test_tls_listeners.py", "tests/security/test_client_tls.py"),
        ),
    ),
    Target(
        "kafkapy/_core/broker_state",
        (
            "tests/unit/_core/broker_state",
            "tests/unit/metrics/test_page.py",
            "tests/unit/storage",
            "tests/unit/replica",
            "tests/property/test_gate_twin.py",
            "tests/property/test_gate_permissions_twin.py",
            "tests/property/test_gate_quotas.py",
        ),
        (
            "tests/unit/metrics",
            "tests/operations",
            "tests/unit/replica",
            "tests/unit/server",
            "tests/property",
            "tests/crash",
        ),
    ),
    Target(
        "kafkapy/_core/gate",
        (
            *("tests/unit/_core/gate", "tests/property/test_gate_twin.py", "tests/property/test_held_fetch_twin.py"),
            *("tests/property/test_follower_append_twin.py", "tests/property/test_replicated_twin.py"),
            *("tests/property/test_gate_permissions_twin.py", "tests/property/test_gate_quotas.py"),
        ),
        (
            *("tests/unit/_core/reactor", "tests/unit/replica", "tests/wire", "tests/crash/test_disk_failure.py"),
            *("tests/clients/test_client_consumer.py", "tests/clients/test_client_transactions.py"),
        ),
    ),
    Target(
        "kafkapy/_core/client",
        ("tests/unit/_core/client", "tests/unit/client", "tests/property/test_core_arrow_batch.py"),
        (
            *("tests/clients/test_client_producer.py", "tests/clients/test_client_consumer.py"),
            *("tests/clients/test_client_arrow.py", "tests/clients/test_client_transactions.py", "tests/unit/tools"),
        ),
    ),
)


def target_of(path: str) -> Target:
    """Returns the target with the longest path that contains the file."""
    return max((each for each in TARGETS if path.startswith(each.path + "/")), key=lambda each: len(each.path))


def own_tests(root: Path, path: str) -> tuple[str, ...]:
    """Returns the test file below tests/unit that is named like the source, if there is one."""
    own = root / "tests" / "unit" / Path(path).relative_to("kafkapy").with_name(f"test_{Path(path).stem}.py")
    return (str(own.relative_to(root)),) if own.exists() else ()
