"""Sessions and heartbeats of brokers: the state of the active controller that is not in the metadata log.

The response to a heartbeat depends on the broker's state and on what the broker asks for:

state                                   asks                              gets
fenced                                  to shut down                      shut down
fenced                                  to be unfenced, and knows its     unfenced; leaders for partitions without one
                                        own registration
unfenced                                to be fenced                      fenced (and to shut down, if it asks for both)
unfenced, leads partitions              to shut down                      a controlled shutdown: it leaves every ISR
unfenced, leads nothing                 to shut down                      fenced, shut down
in controlled shutdown, leads nothing   (any heartbeat)                   fenced, shut down, once every active broker
                                                                          has applied the controlled shutdown's records

Times are arguments, in milliseconds of the monotonic clock. A new active controller makes a new object: every unfenced
broker gets a full session, and controlled shutdowns begin again.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    check_broker_epoch,
    cordon_directories,
    fence_broker,
    register_broker,
    take_directories_offline,
    unfence_broker,
)
from kafkapy.controller.partition_changes import has_leaderships
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings
from kafkapy.errors import ApiError, Error
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple

NOT_REPORTED = -1


class Heartbeat(NamedTuple):
    """A broker's heartbeat. `metadata_offset` is the offset of the last metadata record that the broker has applied.

    `offline_log_dirs` and `cordoned_log_dirs` are ids of log directories; `cordoned_log_dirs` is None while the broker
    does not know which directories are cordoned.
    """

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    wants_fence: bool
    wants_shutdown: bool
    offline_log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None


class HeartbeatResponse(NamedTuple):
    """The response to a heartbeat. `is_caught_up` is True if the broker has applied its own registration."""

    is_caught_up: bool
    is_fenced: bool
    is_in_controlled_shutdown: bool
    should_shut_down: bool


class _BrokerState:
    """Three offsets in the metadata log for one broker; NOT_REPORTED for an offset that is not known.

    They are the last offset that the broker has reported, and the offsets of the last records of its registration and
    of its controlled shutdown.
    """

    __slots__ = ("metadata_offset", "registration_offset", "shutdown_offset")

    def __init__(self) -> None:
        self.metadata_offset = NOT_REPORTED
        self.registration_offset = NOT_REPORTED
        self.shutdown_offset = NOT_REPORTED


class BrokerSessions:
    """The session and the metadata offsets of each broker. A broker is identified by its id and epoch.

    Any thread may call `contact`, so that a busy controller does not fence brokers that are alive; all other methods
    run on the quorum thread, which runs the controller.
    """

    __slots__ = ("_contacts", "_session_timeout_ms", "_states")

    def __init__(self, image: MetadataImage, session_timeout_ms: int, monotonic_ms: int) -> None:
        """Begins a session for every unfenced broker of `image`, as if the broker had sent a heartbeat now.

        The time of its last heartbeat to the previous controller is not known. `monotonic_ms` is the present time. A
        session ends `session_timeout_ms` after the broker's last heartbeat.
        """
        self._session_timeout_ms = session_timeout_ms
        self._states: dict[tuple[int, int], _BrokerState] = {}
        self._contacts: dict[tuple[int, int], int] = {
            (broker.broker_id, broker.epoch): monotonic_ms for broker in image.brokers.values() if not broker.fenced
        }

    # -- sessions

    def contact(self, broker_id: int, broker_epoch: int, monotonic_ms: int) -> None:
        """Begins the session of a broker again, because the broker has sent a heartbeat at `monotonic_ms`.

        Any thread may call it.
        """
        self._contacts[broker_id, broker_epoch] = monotonic_ms

    def has_valid_session(self, broker_id: int, broker_epoch: int, monotonic_ms: int) -> bool:
        contact_ms = self._contacts.get((broker_id, broker_epoch))
        return contact_ms is not None and not self._is_expired(contact_ms, monotonic_ms)

    def expired(self, monotonic_ms: int) -> tuple[int, int] | None:
        """Removes one expired session and returns its broker id and epoch; None if no session has expired."""
        for broker, contact_ms in self._contacts.copy().items():
            if self._is_expired(contact_ms, monotonic_ms):
                del self._contacts[broker]
                return broker
        return None

    def next_expiry_ms(self) -> int | None:
        """Returns the monotonic time in ms from which `expired` may return a broker; None if there are no sessions."""
        contacts = self._contacts.copy()
        return min(contacts.values()) + self._session_timeout_ms + 1 if contacts else None

    def _is_expired(self, contact_ms: int, monotonic_ms: int) -> bool:
        return contact_ms + self._session_timeout_ms < monotonic_ms

    def fence_expired(
        self, image: MetadataImage, monotonic_ms: int, settings: ControllerSettings = DEFAULT_SETTINGS
    ) -> ControllerResult[bool]:
        """Fences at most one broker whose session has expired. The response is True if more sessions may have expired.

        A call fences only one broker, because the next decision has to use an image in which this broker is fenced. The
        leadership of a partition may move to another broker whose session has also expired. In this case the leadership
        moves again when that broker is fenced.
        """
        found = self.expired(monotonic_ms)
        if found is None:
            return ControllerResult([], False)
        result = self.fence_dead(image, *found, settings)
        return ControllerResult(result.records, True)

    def fence_dead(
        self,
        image: MetadataImage,
        broker_id: int,
        broker_epoch: int,
        settings: ControllerSettings = DEFAULT_SETTINGS,
    ) -> ControllerResult[bool]:
        """Ends the session of a broker that is known to be dead, and fences the broker.

        The response is False, and nothing changes, if the broker has registered again with another epoch or is not
        registered. If the broker is alive after all, its next heartbeat begins a new session and unfences it.
        """
        self._contacts.pop((broker_id, broker_epoch), None)
        self._states.pop((broker_id, broker_epoch), None)
        broker = image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            return ControllerResult([], False)
        return ControllerResult(fence_broker(image, broker_id, settings).records, True)

    # -- registration

    def register(
        self,
        image: MetadataImage,
        registration: BrokerRegistration,
        clean_broker_epoch: int,
        monotonic_ms: int,
        settings: ControllerSettings = DEFAULT_SETTINGS,
        *,
        kraft_version: int = 0,
    ) -> ControllerResult[int]:
        """Registers a broker by the function `register_broker`. The response is the broker epoch.

        Stores the offset of the registration's last record: a broker whose heartbeat has this offset or a higher one
        has applied its own registration. `clean_broker_epoch` is the epoch in the broker's clean-shutdown marker, -1
        without a marker. Raises ApiError(DUPLICATE_BROKER_REGISTRATION) while another incarnation has a valid session,
        and the errors of `register_broker`.
        """
        broker_id = registration.broker_id
        previous = image.brokers.get(broker_id)
        is_other = previous is not None and previous.incarnation_id != registration.incarnation_id
        if previous is not None and is_other and self.has_valid_session(broker_id, previous.epoch, monotonic_ms):
            raise ApiError(
                Error.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session.",
            )
        result = register_broker(image, registration, clean_broker_epoch, settings, kraft_version=kraft_version)
        for key in [key for key in self._states if key[0] == broker_id and key[1] != result.response]:
            del self._states[key]
        self._state(broker_id, result.response).registration_offset = image.offset + len(result.records) - 1
        return result

    # -- offsets

    def lowest_active_offset(self, image: MetadataImage) -> int | None:
        """Returns the lowest of the metadata offsets that active brokers have reported in heartbeats.

        Returns None if there are no active brokers, and NOT_REPORTED if an active broker has sent no heartbeat yet.
        """
        offsets = []
        for broker in image.brokers.values():
            state = self._states.get((broker.broker_id, broker.epoch))
            if broker.is_active and (state is None or state.shutdown_offset == NOT_REPORTED):
                offsets.append(NOT_REPORTED if state is None else state.metadata_offset)
        return min(offsets) if offsets else None

    def _state(self, broker_id: int, broker_epoch: int) -> _BrokerState:
        state = self._states.get((broker_id, broker_epoch))
        if state is None:
            state = self._states[broker_id, broker_epoch] = _BrokerState()
        return state

    # -- heartbeats

    def heartbeat(
        self,
        image: MetadataImage,
        request: Heartbeat,
        monotonic_ms: int,
        settings: ControllerSettings = DEFAULT_SETTINGS,
    ) -> ControllerResult[HeartbeatResponse]:
        """Handles a heartbeat, according to the table in the module's docstring.

        The result may fence or unfence the broker, begin or end its controlled shutdown, and record that log
        directories have failed or are cordoned. Raises ApiError(STALE_BROKER_EPOCH) if no broker is registered with the
        id and the epoch in `request`.
        """
        broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
        self.contact(request.broker_id, request.broker_epoch, monotonic_ms)
        state = self._state(request.broker_id, request.broker_epoch)
        if broker.fenced:
            state.shutdown_offset = NOT_REPORTED
        known = broker.epoch if state.registration_offset == NOT_REPORTED else state.registration_offset
        is_caught_up = request.metadata_offset >= known
        call = _HeartbeatCall(image, request, is_caught_up, settings)
        if broker.fenced:
            changes, response = _fenced(call)
        elif state.shutdown_offset != NOT_REPORTED:
            changes, response = self._shutting_down(call, state)
        else:
            changes, response = _unfenced(call)
        state.metadata_offset = request.metadata_offset
        records = [*changes, *_directory_changes(image, broker, request, settings, changes)]
        if response.is_in_controlled_shutdown and state.shutdown_offset == NOT_REPORTED:
            state.shutdown_offset = image.offset + len(records) - 1
        return ControllerResult(records, response)

    def _shutting_down(self, call: _HeartbeatCall, state: _BrokerState) -> ControllerResult[HeartbeatResponse]:
        broker_id = call.request.broker_id
        lowest = self.lowest_active_offset(call.image)
        others_know = lowest is None or state.shutdown_offset <= lowest
        if has_leaderships(call.image, broker_id) or not others_know:
            return call.respond(is_in_controlled_shutdown=True)
        records = fence_broker(call.image, broker_id, call.settings).records
        return call.respond(records, is_fenced=True, should_shut_down=True)


class _HeartbeatCall(NamedTuple):
    """A heartbeat with the image and the settings by which it is handled. The object does not change after its
    construction.

    `is_caught_up` is True if the broker has applied its own registration.
    """

    image: MetadataImage
    request: Heartbeat
    is_caught_up: bool
    settings: ControllerSettings

    def respond(
        self,
        records: Sequence[MessageAndVersion] = (),
        *,
        is_fenced: bool = False,
        is_in_controlled_shutdown: bool = False,
        should_shut_down: bool = False,
    ) -> ControllerResult[HeartbeatResponse]:
        response = HeartbeatResponse(self.is_caught_up, is_fenced, is_in_controlled_shutdown, should_shut_down)
        return ControllerResult(records, response)


def _fenced(call: _HeartbeatCall) -> ControllerResult[HeartbeatResponse]:
    request = call.request
    if request.wants_shutdown:
        return call.respond(is_fenced=True, should_shut_down=True)
    if request.wants_fence or not call.is_caught_up:
        return call.respond(is_fenced=True)
    return call.respond(unfence_broker(call.image, request.broker_id, call.settings).records)


def _unfenced(call: _HeartbeatCall) -> ControllerResult[HeartbeatResponse]:
    image, request, settings = call.image, call.request, call.settings
    broker_id, wants_shutdown = request.broker_id, request.wants_shutdown
    if request.wants_fence or (wants_shutdown and not has_leaderships(image, broker_id)):
        records = fence_broker(image, broker_id, settings).records
        return call.respond(records, is_fenced=True, should_shut_down=wants_shutdown)
    if wants_shutdown:
        records = begin_controlled_shutdown(image, broker_id, settings).records
        return call.respond(records, is_in_controlled_shutdown=True)
    return call.respond()


def _directory_changes(
    image: MetadataImage,
    broker: BrokerRegistration,
    request: Heartbeat,
    settings: ControllerSettings,
    records: Sequence[MessageAndVersion],
) -> list[MessageAndVersion]:
    """Returns the records for failed and cordoned log directories that a heartbeat reports.

    `records` are the records that the heartbeat causes otherwise; they come first in the log. The result is computed
    from the image after `records`, because one heartbeat may both unfence a broker and report a failed directory.
    """
    changes: list[MessageAndVersion] = []
    if levels.supports_directory_assignment(image.metadata_version) and request.offline_log_dirs:
        if records and not set(broker.log_dirs).isdisjoint(request.offline_log_dirs):
            delta = MetadataDelta(image)
            for message, _ in records:
                delta.replay(message)
            image = delta.to_image(image.offset + len(records), image.epoch)
        changes += take_directories_offline(image, broker.broker_id, request.offline_log_dirs, settings).records
    changes += cordon_directories(image, broker.broker_id, request.cordoned_log_dirs).records
    return changes
