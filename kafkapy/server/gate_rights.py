"""Stores the permissions of clients for the gate, the compiled code that serves usual Produce and Fetch requests.

The gate cannot call the authorizer. The first request of a client is therefore handled in Python, which asks the
authorizer. If it permits the client to produce to a topic, to fetch from it, or to fetch as a follower, the permission
is attached to the client's connection, and the gate serves later requests itself until the ACLs change. A denial is
never stored: requests without a permission are always handled in Python, which logs them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from kafkapy._core.broker_state.client_rights import READ, WRITE, ClientRights
from kafkapy._core.gate.data_gate import DataGate
from kafkapy._core.reactor.reactor import Connection
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.api import ApiKey
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.security.authorizer import Action, Authorizer, Requester
from kafkapy.security.principal import Principal
from kafkapy.security.standard_authorizer import StandardAuthorizer

GATED_APIS = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
_OPERATIONS = {(ApiKey.PRODUCE, Operation.WRITE): WRITE, (ApiKey.FETCH, Operation.READ): READ}

# At this level the audit log has a line for every permission. Only Python code writes it, the gate does not.
audit_logger = logging.getLogger("kafka.authorizer.logger")
AUDIT_LEVEL = logging.DEBUG
# The interval at which the generation of an administrator's own authorizer is read.
GENERATION_POLL_MS = 100


class GateRights:
    """Stores the permissions of clients in the gate, the compiled code that serves usual Produce and Fetch requests.

    Only the reactor's thread may use it, except `check` and `on_metadata`.
    """

    def __init__(self, gate: DataGate, authorizer: Authorizer) -> None:
        self._gate = gate
        self._authorizer = authorizer
        self._seen_generation = authorizer.generation
        self._shared: WeakValueDictionary[tuple[Principal, str, str], ClientRights] = WeakValueDictionary()
        gate.authorize()

    def check(self) -> None:
        """Makes the stored permissions invalid if the authorizer's generation, the number of its changes, has changed.

        Called on any thread, after the change of the authorizer.
        """
        generation = self._authorizer.generation
        if generation != self._seen_generation:
            self._seen_generation = generation
            self._gate.outdate_rights()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Makes the stored permissions invalid if the ACLs have changed (`check`). Called on the quorum thread, after
        the authorizer has applied the change of the metadata.
        """
        self.check()

    def follow_level(self) -> None:
        """Makes the stored permissions invalid if the audit log now has a line for each permission, which the gate does
        not write. Called after a change of the loggers' levels.
        """
        if audit_logger.isEnabledFor(AUDIT_LEVEL):
            self._gate.outdate_rights()

    def poll(self, schedule: Callable[[int, Callable[[], None]], object]) -> None:
        """Makes the stored permissions invalid if the authorizer's answers have changed (`check`).

        If the authorizer is not Kafka's StandardAuthorizer but a class of the administrator, repeats this every
        GENERATION_POLL_MS, by `schedule(delay_ms, callback)`, a function of the reactor. The answers of
        StandardAuthorizer change only with the metadata, after which `on_metadata` calls `check`.
        """
        self.check()
        if not isinstance(self._authorizer, StandardAuthorizer):
            schedule(GENERATION_POLL_MS, lambda: self.poll(schedule))

    @staticmethod
    def concerns(api_key: int) -> bool:
        """Returns whether the compiled request path (the gate) serves requests of the API, for which it needs
        permissions.
        """
        return api_key in GATED_APIS

    def begin(self) -> int:
        """Invalidates the stored permissions if the ACLs have changed, and returns the generation to pass to `learn`
        later. Called before the authorizer is asked.
        """
        self.check()
        return self._gate.rights_generation

    def learn(
        self,
        connection: Connection,
        requester: Requester,
        actions: Sequence[Action],
        answers: Sequence[bool],
        generation: int,
    ) -> None:
        """Stores the permissions that the authorizer has given: `answers` has the authorizer's answer to each of
        `actions`.

        `generation` is what `begin` returned before the authorizer was asked. The compiled request path (the gate)
        ignores permissions of an older generation than its own. Does nothing while the audit log has a line for each
        allowed operation, because the gate writes no such lines.
        """
        if audit_logger.isEnabledFor(AUDIT_LEVEL):
            return
        rights: ClientRights | None = None
        for action, allowed in zip(actions, answers, strict=True):
            if not allowed:
                continue
            rights = rights or self._rights(connection, requester, generation)
            if action.resource_type is ResourceType.TOPIC:
                operation = _OPERATIONS.get((ApiKey(requester.api_key), action.operation))
                number = self._gate.topic_number(action.resource_name)
                if operation is not None and number:
                    rights.allow(number, operation)
            elif action.operation is Operation.CLUSTER_ACTION and requester.api_key == ApiKey.FETCH:
                rights.allow_following()

    def _rights(self, connection: Connection, requester: Requester, generation: int) -> ClientRights:
        """Returns the object with the rights of the client, and attaches it to the client's connection.

        Connections to the same listener with the same principal and client address share one object. Rights in it that
        were stored under another `generation` of the authorizer are removed first.
        """
        key = (requester.principal, requester.host, requester.listener)
        rights = self._shared.get(key)
        if rights is None:
            rights = self._shared[key] = ClientRights(generation)
        elif rights.generation != generation:
            rights.renew(generation)
        if self._gate.rights_of(connection) is not rights:
            self._gate.set_rights(connection, rights)
        return rights
