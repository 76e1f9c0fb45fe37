"""An authorizer for tests, which allows what was granted to anybody and records what it was asked."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.security.acl import CLUSTER_NAME, Operation, ResourceType
from kafkapy.security.authorizer import Action, Requester

# Operation -> the operations each of which implies it, as in Kafka's authorizer.
_IMPLIED_BY = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


class GrantedOperations:
    """The Authorizer that allows the operations in `granted`; `asked` has every action with its requester."""

    generation = 1

    def __init__(self) -> None:
        self.granted: set[tuple[Operation, ResourceType, str]] = set()
        self.asked: list[tuple[Requester, Action]] = []

    def grant(self, operation: Operation, resource_type: ResourceType, *names: str) -> None:
        """Allows an operation on resources; without names, on the cluster."""
        self.granted |= {(operation, resource_type, name) for name in names or (CLUSTER_NAME,)}

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> list[bool]:
        self.asked += [(requester, action) for action in actions]
        return [self._is_granted(action) for action in actions]

    def authorize_by_type(self, requester: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        return any((operation, resource_type) == granted[:2] for granted in self.granted)

    def _is_granted(self, action: Action) -> bool:
        sufficient = {action.operation, *_IMPLIED_BY.get(action.operation, ())}
        return any((each, action.resource_type, action.resource_name) in self.granted for each in sufficient)

    def questions(self) -> list[tuple[Operation, str, int]]:
        """Returns (operation, resource name, resource count) of each action in `asked`, and empties `asked`."""
        asked, self.asked = self.asked, []
        return [(action.operation, action.resource_name, action.resource_count) for _, action in asked]
