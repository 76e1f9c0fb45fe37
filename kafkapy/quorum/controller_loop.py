"""The quorum thread, which runs Raft, replays committed records, and on the leader runs the controller's operations.

    message of another node, or timer -> Raft -> files, messages, high watermark
    operation of the controller -> records -> append -> Raft
    high watermark -> images -> listeners -> responses

Operations are pure functions of the image (the state of the metadata). All waiting operations are run one after
another, each on the image that results from the operation before it. Their records are written with one sync. When the
records are committed, the changes of each operation are published in order, and then the response of the operation is
sent. A change that a response reports is therefore durable. Every listener has applied the change, or has queued it on
the thread that handles the response, so that this thread applies the change first.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafkapy.controller.result import Operation, Response
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.quorum.activation import activate
from kafkapy.quorum.active_controller import ActiveController, Submitted
from kafkapy.quorum.metadata_quorum import MetadataQuorum
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.controller.periodic_tasks import PeriodicTasks

MAX_QUEUED_OPERATIONS = 10_000
MAX_EVENTS_TOGETHER = 128
# A stop writes a snapshot if the next start would have to replay more than this number of records (about a quarter
# second). Each start and stop changes every partition: without snapshots, starts would become slower and slower.
LONG_REPLAY = 20_000
REPLAY_BYTES = 1024 * 1024
SHUTDOWN_TIMEOUT_MS = 5000
LONGEST_WAIT_S = 3600.0
logger = logging.getLogger("kafka.controller.QuorumController")

Result = TypeVar("Result")


class _AwaitedWork:
    """A function that the quorum thread (see the module) will call. `future` fails if that thread ends first."""

    def __init__(self, work: Callable[[], None], future: Future[Any]) -> None:
        self._work = work
        self.future = future

    def __call__(self) -> None:
        self._work()


Event = Submitted | _AwaitedWork | Callable[[], None]


class MetadataListener(Protocol):
    """A component that is notified of committed metadata changes, for example to create logs or to apply
    configuration."""

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> Future[None] | None:
        """Is called on the quorum thread for each committed change, in log order. The method must return soon, and must
        not wait for the quorum thread.

        Returns None if the change has been applied, or has been posted to the thread that sends responses. Otherwise
        returns a Future that is completed, on any thread, when the change has been applied.
        """


class ControllerLoop:
    """Owns the quorum thread and the newest committed image; only this thread calls the quorum.

    `start` and `stop` are called by the thread that starts and stops the node. `submit`, `post`, `offer`, `call`,
    `caught_up` and `follow` may be called from any thread; everything else happens on the quorum thread. A failure of
    an append or a listener is fatal: `on_fault` is called once with the exception, and all waiting and later operations
    fail.
    """

    def __init__(
        self,
        quorum: MetadataQuorum,
        cache: MetadataCache,
        clock: Clock,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        # Makes the periodic tasks of an active controller, of its newest image and the time. Set before the start.
        self.make_tasks: Callable[[MetadataImage, int], PeriodicTasks] | None = None
        self._tasks: PeriodicTasks | None = None
        self.cache = cache
        self.quorum = quorum
        self._clock = clock
        self._on_fault = on_fault
        self._listeners: list[MetadataListener] = []
        self._queue: queue.Queue[Event] = queue.Queue(MAX_QUEUED_OPERATIONS)
        self._taken: deque[Event] = deque()  # from the queue, and not yet run
        self._thread = threading.Thread(target=self._run, name="quorum-controller", daemon=True)
        self._failure: BaseException | None = None
        self._stopping = False
        self._active: ActiveController | None = None
        # Called on the quorum thread when the leader has changed, and when this node has become the active controller.
        self.on_leader_change: Callable[[], None] = lambda: None
        self.on_active: Callable[[], None] = lambda: None
        self._led: tuple[int, int] | None = None  # the epoch that this node leads, and its start offset
        self._is_activation_due = False
        self._waiting_for_image: list[Future[MetadataImage]] = []
        self._bytes_since_snapshot = 0
        self._snapshot_deadline_ms: int | None = None

    @property
    def image(self) -> MetadataImage:
        """The newest committed image. Listeners may not have applied it yet."""
        return self.cache.image

    @property
    def is_active(self) -> bool:
        """True if this node is the active controller and accepts operations. Any thread may read it."""
        return self._active is not None and self._failure is None and not self._stopping

    def start(self, image: MetadataImage) -> None:
        """Joins the quorum and starts the quorum thread. `image` is the image that `MetadataQuorum.open` returned.

        If this node is the only voter, it is the active controller on return. Raises StorageError if the log
        cannot be written.
        """
        self.cache.image = image
        self.quorum.start(self)
        self._activate_if_due()
        self._thread.start()

    def submit(self, operation: Operation[Response]) -> Future[Response]:
        """Calls `operation(image)` on the quorum thread and commits the records that it returns. The Future gets the
        response once the records are committed and published.

        The Future fails with the ApiError that the operation raises, or with one of three others: REQUEST_TIMED_OUT if
        too many operations wait already, NOT_CONTROLLER if this node is not the active controller, and
        KAFKA_STORAGE_ERROR if the records cannot be written. After a change of the leader, a failed operation may have
        taken effect all the same.
        """
        future: Future[Response] = Future()
        if self._stopping or self._failure is not None:
            future.set_exception(_shutting_down())
            return future
        try:
            self._queue.put_nowait(Submitted(operation, future))
        except queue.Full:
            future.set_exception(ApiError(Error.REQUEST_TIMED_OUT, "Too many operations wait for the controller."))
        self._fail_queued_after_end()
        return future

    def post(self, work: Callable[[], None]) -> None:
        """Makes the quorum thread call `work()`. Any thread may call `post`, which waits while the queue is full; on
        the quorum thread it does not wait.

        If the loop has ended, `work` is not called, and the caller is not notified.
        """
        self._put(work)

    def _put(self, work: Callable[[], None]) -> bool:
        """Queues `work`, which the quorum thread then calls, and returns True; waits while the queue is full. Returns
        False if the loop has ended.

        The quorum thread must not wait for itself. The functions that it queues itself are therefore not added to the
        queue, but to the events that the thread has already taken from the queue.
        """
        if threading.current_thread() is self._thread:
            self._taken.append(work)
            return not self._stopping and self._failure is None
        while not self._stopping and self._failure is None:
            try:
                self._queue.put(work, timeout=1)
            except queue.Full:
                continue
            return True
        return False

    def offer(self, work: Callable[[], None]) -> bool:
        """Queues `work`, which the quorum thread then calls, and returns True. Returns False if the queue is full.
        Any thread may call `offer`; it does not wait."""
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            return False
        return True

    def call(self, work: Callable[[], Result]) -> Future[Result]:
        """Makes the quorum thread call `work()`. The Future gets the result or the exception of `work`, or fails with
        NOT_CONTROLLER if the loop has ended."""
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

        self._post_awaited(run, future)
        return future

    def caught_up(self) -> Future[MetadataImage]:
        """Returns a Future of the first image that contains all records below the leader's high watermark.

        The leader's high watermark is the newest one that this node has received. The Future fails with NOT_CONTROLLER
        if the loop ends before the image exists.
        """
        future: Future[MetadataImage] = Future()

        def wait() -> None:
            self._waiting_for_image.append(future)
            self._report_caught_up()

        self._post_awaited(wait, future)
        return future

    def _post_awaited(self, work: Callable[[], None], future: Future[Any]) -> None:
        if self._put(_AwaitedWork(work, future)):
            self._fail_queued_after_end()
        else:
            future.set_exception(_shutting_down())

    def follow(self, listener: MetadataListener) -> Future[MetadataImage]:
        """Adds a listener. The Future gets the image that is the newest one when the listener is added.

        The first change with which the listener is called is the change after this image.
        """

        def add() -> MetadataImage:
            self._listeners.append(listener)
            return self.cache.image

        return self.call(add)

    def stop(self) -> None:
        """Runs the operations that were submitted before this call, leaves the quorum, ends the quorum thread and
        closes the log. Must not be called on the quorum thread."""
        if self._thread.is_alive():
            self._queue.put(self._begin_stop)
            self._thread.join()

    # -- the thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._take()
                self._process()
            if self._failure is None and self.quorum.records_behind_snapshot > LONG_REPLAY:
                self.quorum.write_snapshot(self.cache.image)
            self.quorum.close()
        except BaseException as error:
            self._fail(error)
        self._stopping = True
        self._fail_waiting()

    def _fail(self, error: BaseException) -> None:
        """Calls `on_fault` with `error` and logs it, if it is the first failure.

        Must be called before any operation fails because of `error`. The thread that starts the node waits for an
        operation, which registers the broker. When this operation has failed, that thread raises the exception that
        `on_fault` has received, because it says more than the KAFKA_STORAGE_ERROR of the operation.
        """
        if self._failure is None:
            self._failure = error
            trace = None if isinstance(error, StorageError) else error  # A full disk is not a bug.
            logger.critical("the controller stops after an error: %s", error, exc_info=trace)
            self._on_fault(error)

    def _take(self) -> None:
        """Takes events from the queue until the queue is empty or MAX_EVENTS_TOGETHER events are waiting to be run.

        If no event is waiting to be run and the queue is empty, waits for the next event, but not longer than until the
        next timer.
        """
        taken = self._taken
        try:
            taken.append(self._queue.get_nowait() if taken else self._queue.get(timeout=self._wait_s()))
            while len(taken) < MAX_EVENTS_TOGETHER:
                taken.append(self._queue.get_nowait())
        except queue.Empty:
            return

    def _wait_s(self) -> float:
        """Returns the time until the next timer, in seconds, at most LONGEST_WAIT_S."""
        due_ms = self.quorum.machine.next_deadline_ms()
        task_ms = None if self._tasks is None else self._tasks.next_deadline_ms()
        if task_ms is not None:
            due_ms = min(due_ms, task_ms)
        if self._snapshot_deadline_ms is not None:
            due_ms = min(due_ms, self._snapshot_deadline_ms)
        return min(max(0.0, (due_ms - self._clock.monotonic_ms()) / 1000), LONGEST_WAIT_S)

    def _run_tasks(self) -> None:
        """Runs the periodic tasks of the active controller that are due.

        The tasks begin when the metadata contain a broker whose id is not this node's.
        """
        active, monotonic_ms = self._active, self._clock.monotonic_ms()
        if active is None or self.make_tasks is None:
            return
        if self._tasks is None:
            if active.image.brokers.keys() <= {self.quorum.config.node_id}:
                return
            self._tasks = self.make_tasks(active.image, monotonic_ms)
        while self._tasks is not None and (operation := self._tasks.due(monotonic_ms)) is not None:
            self._run_operations([Submitted(operation, Future())])

    def _process(self) -> None:
        """Runs the events that were taken from the queue, then the timers and tasks that are due.

        Events that are posted by these events are run by the next call. Otherwise an event that posts itself again
        would delay timers and the events of other threads without limit.
        """
        submitted: list[Submitted] = []
        for _ in range(len(self._taken)):
            event = self._taken.popleft()
            if isinstance(event, Submitted):
                submitted.append(event)
                continue
            self._run_operations(submitted)  # which were submitted before the event
            submitted = []
            event()
            self._activate_if_due()
        self._run_operations(submitted)
        self.quorum.tick()
        self._activate_if_due()
        self._run_tasks()
        self._maybe_snapshot()

    def _run_operations(self, submitted: list[Submitted]) -> None:
        if not submitted:
            return
        if self._active is None:
            for _, future in submitted:
                if future.set_running_or_notify_cancel():
                    future.set_exception(ApiError(Error.NOT_CONTROLLER, "This node is not the active controller."))
            return
        try:
            self._count_bytes(self._active.run(submitted))
        except BaseException as error:
            self._fail(error)
            self._active.fail(ApiError(Error.KAFKA_STORAGE_ERROR))
            raise

    # -- events of the quorum

    def committed(self, end_offset: int) -> None:
        """Is called when the records before `end_offset` are committed, and publishes them. A leader becomes the active
        controller when the first record of its epoch, and with it all records of former epochs, are committed."""
        if self._active is not None:
            self._active.commit(end_offset)
        else:
            self._replay(end_offset)
            self._is_activation_due = self._led is not None and end_offset > self._led[1]
        self._report_caught_up()

    def became_leader(self, epoch: int, start_offset: int) -> None:
        self._led = (epoch, start_offset)

    def lost_leadership(self, epoch: int) -> None:
        """Ends this node's active controller, if there is one, and fails the operations that wait for a commit.

        After that, committed records are replayed from the newest published image on, which contains no uncommitted
        records.
        """
        self._led = None
        self._is_activation_due = False
        if self._active is not None:
            logger.info("[QuorumController id=%d] no longer active", self.quorum.config.node_id)
            self._active.fail(ApiError(Error.NOT_CONTROLLER, "The active controller has changed."))
            self._active = None
            self._tasks = None
            self.quorum.committed.continue_on(self.cache.image)

    def leader_changed(self) -> None:
        machine = self.quorum.machine
        logger.info("leader of epoch %d: %s", machine.epoch, machine.leader_id if machine.leader_id >= 0 else "none")
        self.on_leader_change()

    def control_records_appended(self, end_offset: int) -> None:
        if self._active is not None:
            self._active.skip_to(end_offset)

    def snapshot_loaded(self, image: MetadataImage) -> None:
        """Publishes the change from the newest image to `image`, the image of a snapshot that has replaced the log."""
        assert self._active is None, "an active controller has loaded a snapshot"
        self._publish(*self.quorum.committed.load_snapshot(image))

    def stopped(self) -> None:
        self._stopping = True

    def _begin_stop(self) -> None:
        self.quorum.shutdown(SHUTDOWN_TIMEOUT_MS)

    def _activate_if_due(self) -> None:
        """Makes this node the active controller if it leads and the whole log is committed and replayed.

        This appends records to the log. The method must therefore not be called while the quorum carries out effects
        (such as writes) of the Raft machine.
        """
        if not self._is_activation_due:
            return
        assert self._led is not None, "only the leader becomes the active controller"
        self._is_activation_due = False
        epoch, _ = self._led
        quorum, committed = self.quorum, self.quorum.committed
        end_offset = quorum.log.end_offset
        assert committed.next_offset == end_offset, "the log has uncommitted records of other leaders"
        image = MetadataDelta(committed.image).to_image(end_offset, epoch)
        active = self._active = ActiveController(image, epoch, quorum.encode, quorum.append, self._publish)
        settings, registration, in_transaction = quorum.settings, quorum.registration, committed.in_transaction
        self._run_operations(
            [Submitted(lambda image: activate(image, settings, registration, in_transaction=in_transaction), Future())]
        )
        self.on_active()
        logger.info("[QuorumController id=%d] active since epoch %d", quorum.config.node_id, active.epoch)

    def _replay(self, end_offset: int) -> None:
        """Replays and publishes the records before `end_offset`, which are committed and were written by another
        leader."""
        committed, log = self.quorum.committed, self.quorum.log
        while committed.next_offset < end_offset:
            content = log.read(committed.next_offset, REPLAY_BYTES)
            committed.replay(content, end_offset)
            self._count_bytes(len(content))
        taken = committed.take()
        if taken is not None:
            self._publish(*taken)

    def _report_caught_up(self) -> None:
        if self._waiting_for_image and 0 <= self.quorum.leader_high_watermark <= self.cache.image.offset:
            waiting, self._waiting_for_image = self._waiting_for_image, []
            for future in waiting:
                future.set_result(self.cache.image)

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> list[Future[None]]:
        """Calls all listeners with a committed change, and returns the Futures of the listeners that have not applied
        it yet."""
        self.cache.image = image
        applying = [listener.on_metadata(delta, image) for listener in self._listeners]
        return [future for future in applying if future is not None]

    # -- snapshots

    def _count_bytes(self, count: int) -> None:
        self._bytes_since_snapshot += count
        interval_ms = self.quorum.settings.snapshot_interval_ms
        if self._snapshot_deadline_ms is None and count and interval_ms > 0:
            self._snapshot_deadline_ms = self._clock.monotonic_ms() + interval_ms

    def _maybe_snapshot(self) -> None:
        """Writes a snapshot if enough bytes were appended since the last one. Also writes a snapshot if the snapshot
        interval has passed since the first record after the last one."""
        deadline_ms = self._snapshot_deadline_ms
        is_due = deadline_ms is not None and self._clock.monotonic_ms() >= deadline_ms
        if is_due or self._bytes_since_snapshot >= self.quorum.settings.snapshot_after_bytes:
            self.quorum.write_snapshot(self.cache.image)
            self._bytes_since_snapshot = 0
            self._snapshot_deadline_ms = None

    # -- the end

    def _fail_waiting(self) -> None:
        """Fails every future that waits for the quorum thread, which has ended."""
        error = _shutting_down()
        if self._active is not None:
            self._active.fail(error)
        waiting, self._waiting_for_image = self._waiting_for_image, []
        for future in waiting:
            future.set_exception(error)
        while self._taken:
            _fail(self._taken.popleft(), error)
        self._fail_queued_after_end()

    def _fail_queued_after_end(self) -> None:
        """Fails the futures in the queue if the quorum thread no longer takes events. Any thread may call it."""
        while self._stopping:
            try:
                event = self._queue.get_nowait()
            except queue.Empty:
                return
            _fail(event, _shutting_down())


def _fail(event: Event, error: ApiError) -> None:
    """Fails the future of an event that will never be run, if the event has a future."""
    if isinstance(event, Submitted | _AwaitedWork) and event.future.set_running_or_notify_cancel():
        event.future.set_exception(error)


def _shutting_down() -> ApiError:
    return ApiError(Error.NOT_CONTROLLER, "The controller is shutting down.")
