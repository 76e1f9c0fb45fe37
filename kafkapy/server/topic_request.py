"""Asks the active controller for topics that the broker itself needs, or that clients name."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING

from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import CreatedTopic, NewTopic, PlacementRules, create_topics, uncharged
from kafkapy.errors import Error
from kafkapy.server.forwarding_port import OnCreated
from kafkapy.server.mutation_charge import charge_to, mutation_quota
from kafkapy.server.services import Services

if TYPE_CHECKING:
    from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")


def request_topic(
    services: Services,
    wanted: NewTopic,
    context: RequestContext | None = None,
    on_result: OnCreated = lambda result: None,
) -> None:
    """Asks the active controller to create a topic, without waiting for it; clients retry. Only the reactor's thread
    may use it.

    With a `context` the topic is created in the name of its client and charged to the client's controller mutation
    quota, otherwise in the name of the broker. `on_result` gets the error and message, or an exception, on any thread;
    it is not called if an earlier request for the topic still waits for its response.
    """

    def report(result: ErrorMessage | BaseException) -> None:
        _log_failure(wanted.name, result)
        on_result(result)

    controller, forwarding = services.controller, services.forwarding
    if forwarding is not None and not controller.is_active:
        forwarding.create_topic(_with_own_defaults(services, wanted), report, context)
        return
    if wanted.name in services.requested_topics:
        return  # one FindCoordinator may ask for many coordinators whose topic is missing

    def created(done: Future[dict[str, CreatedTopic]]) -> None:
        services.requested_topics.discard(wanted.name)
        report(_result_of(wanted.name, done))

    charge = uncharged if context is None else charge_to(mutation_quota(context, is_strict=True), services.clock)
    rules = PlacementRules(services.config, policies=services.policies, charge=charge)
    services.requested_topics.add(wanted.name)
    controller.submit(lambda image: create_topics(image, [wanted], rules)).add_done_callback(created)


def _with_own_defaults(services: Services, wanted: NewTopic) -> NewTopic:
    """Returns `wanted` with this broker's num.partitions and default.replication.factor where it has -1.

    As in Kafka, the defaults of the broker apply to a topic that it requests, not those of the controller.
    """
    config = services.config
    return wanted._replace(
        num_partitions=config.num_partitions if wanted.num_partitions < 0 else wanted.num_partitions,
        replication_factor=config.default_replication_factor
        if wanted.replication_factor < 0
        else wanted.replication_factor,
    )


def _result_of(topic: str, done: Future[dict[str, CreatedTopic]]) -> ErrorMessage | BaseException:
    failure = done.exception()
    return failure if failure is not None else done.result()[topic].error


def _log_failure(topic: str, result: ErrorMessage | BaseException) -> None:
    if isinstance(result, BaseException):
        logger.warning("Auto topic creation of %s failed: %s", topic, result)
    elif result.error not in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
        logger.warning(
            "Auto topic creation of %s failed with error %s: %s", topic, Error.of(result.error).name, result.message
        )
