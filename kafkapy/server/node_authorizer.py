"""The authorizer of a node: the class that `authorizer.class.name` names, and its connection with the metadata."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from kafkapy.config.python_class import make_plugin
from kafkapy.config.startup_rules import STANDARD_AUTHORIZERS
from kafkapy.errors import ConfigError
from kafkapy.metadata.image import MetadataImage

if TYPE_CHECKING:
    from kafkapy.config.broker_config import BrokerConfig
    from kafkapy.quorum.controller_loop import ControllerLoop
    from kafkapy.security.authorizer import Authorizer

AUTHORIZER_KEY = "authorizer.class.name"
AUTHORIZER_METHODS = ("authorize", "authorize_by_type")


def make_authorizer(config: BrokerConfig) -> Authorizer | None:
    """Constructs and configures the authorizer; returns None if the configuration names none.

    The names of Kafka's classes mean kafkapy's StandardAuthorizer. Another class is constructed without arguments; its
    method `configure`, if it has one, gets the keys and values of the configuration file. Raises ConfigError.
    """
    name = config.authorizer_class_name
    if not name:
        return None
    if name in STANDARD_AUTHORIZERS:
        from kafkapy.security.standard_authorizer import StandardAuthorizer

        standard = StandardAuthorizer()
        standard.configure(config.originals)
        return standard
    authorizer: Authorizer = make_plugin(AUTHORIZER_KEY, name, AUTHORIZER_METHODS, config.originals)
    if not hasattr(authorizer, "generation"):
        raise ConfigError(f"{AUTHORIZER_KEY}={name}: the class has no attribute generation")
    return authorizer


def split_early(config: BrokerConfig, authorizer: Authorizer | None) -> tuple[list[str], list[str]]:
    """Returns the names of the controller's listeners that open at once, and of those that open when the authorizer
    is ready (`early.start.listeners`)."""
    names = config.controller_listener_names
    chosen = config.early_start_listeners
    if authorizer is None or chosen is None:
        return names, []
    early = {name.upper() for name in chosen}
    return [name for name in names if name in early], [name for name in names if name not in early]


def follow_acls(authorizer: Authorizer | None, controller: ControllerLoop, node_id: int) -> Future[MetadataImage]:
    """Makes the authorizer follow the ACLs of the metadata if it is Kafka's StandardAuthorizer.

    The result of the returned Future is the first image that this node has caught up with; it is set when the
    StandardAuthorizer has loaded that image's ACLs. If `authorizer` is None or a class of the administrator, the result
    is set as soon as the node has caught up. Any thread may call this after the start of `controller`.
    """
    caught_up = controller.caught_up()
    if authorizer is None:
        return caught_up
    from kafkapy.security.standard_authorizer import StandardAuthorizer

    if not isinstance(authorizer, StandardAuthorizer):
        return caught_up
    from kafkapy.server.acl_listener import AclListener

    listener = AclListener(authorizer, node_id)
    controller.follow(listener)
    loaded: Future[MetadataImage] = Future()

    def begin(done: Future[MetadataImage]) -> None:
        """Loads the ACLs of the image in `done`, and then completes the Future that `follow_acls` returned.

        If `done` failed, its exception is passed on.
        """
        error = done.exception()
        if error is not None:
            loaded.set_exception(error)
            return
        listener.begin(done.result())
        loaded.set_result(done.result())

    caught_up.add_done_callback(begin)
    return loaded
