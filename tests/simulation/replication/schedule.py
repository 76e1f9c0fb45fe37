"""Random schedules of a cluster with replicated partitions, each determined by its seed.

A schedule begins with a random cluster and takes STEPS steps: time passes, clients produce and consume, messages are
lost, delayed, duplicated and reordered, brokers are killed, paused, cut off, stopped and started, disks lose what was
not synced, the controller fails over, leaders are balanced, replicas are reassigned. Then everything is healed: all
replicas have to join the ISR, and all producers and consumers have to come to their ends.

Three kinds of schedules differ in what they permit:

    KILLED   processes die and come back with their disks; no acknowledged record may be lost
    POWER    with eligible leader replicas (KIP-966); disks lose unsynced writes of fewer brokers at a time than
             min.insync.replicas; no acknowledged record may be lost
    UNCLEAN  any disk may lose writes, and unclean leaders are elected; records may be lost, but all replicas agree in
             the end
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path
from random import Random

from kafkapy.controller.topics import NewTopic, PlacementRules, create_topics
from kafkapy.errors import ApiError
from kafkapy.metadata.topics_image import NO_LEADER, PartitionImage
from kafkapy.types import TopicPartition
from tests.harness.metadata import bootstrapped, broker_config
from tests.simulation.replication.broker import Broker, State
from tests.simulation.replication.clients import ACKS_ALL, Consumer, Producer
from tests.simulation.replication.controller import SimulatedController
from tests.simulation.replication.history import InvariantBroken
from tests.simulation.replication.transactions import TransactionalProducer
from tests.simulation.replication.world import CONTROLLER, World

STEPS = 250
LONGEST_STEP = 3.3  # the logarithm of its milliseconds
HEALED_WITHIN_MS = 120_000
TOPIC = "t"
MEMORY = Path("/dev/shm")


class Kind(Enum):
    """The kinds of schedules of this module's table."""

    KILLED = auto()
    POWER = auto()
    UNCLEAN = auto()


class Schedule:
    """One seeded run, whose disks are below `root`."""

    def __init__(self, seed: int, root: str, *, is_traced: bool = False) -> None:
        self.random = random = Random(seed)
        self.world = world = World(random, is_traced=is_traced)
        self.kind = random.choice((Kind.KILLED, Kind.KILLED, Kind.POWER, Kind.POWER, Kind.UNCLEAN))
        count = random.choice((2, 3, 3, 3, 4))
        self.factor = random.choice((2, min(3, count), min(3, count), count))
        self.min_isr = random.randint(1, self.factor)
        if self.kind is Kind.POWER:
            self.min_isr = random.randint(2, self.factor)
            world.most_disturbed = self.min_isr - 1
        world.loses_power = self.kind is not Kind.KILLED
        world.history.may_lose = self.kind is Kind.UNCLEAN
        world.gate_share = random.choice((0.0, 0.5, 0.9, 1.0))
        elr = self.kind is Kind.POWER or random.random() < 0.5
        version = random.choice((30, 30, 27, 23)) if elr else random.choice((30, 21, 14, 11))
        world.controller = SimulatedController(world, bootstrapped(version, elr=elr))
        self._create_topic(count)
        properties = {
            "log.flush.interval.messages": random.choice(("1", "5", "9223372036854775807")),
            # With the small one, a fetch returns one batch: a follower that is far behind fetches ahead.
            "replica.fetch.max.bytes": random.choice(("1", "1048576")),
        }
        for broker_id in range(1, count + 1):
            world.brokers[broker_id] = Broker(world, broker_id, root, properties)
        self._create_clients()
        self.faults = random.choice((0.05, 0.1, 0.2))
        if random.random() < 0.8:
            world.drop = random.choice((0.0, 0.02, 0.1))
            world.duplicate = random.choice((0.0, 0.05, 0.3))
            world.slow = random.choice((0.0, 0.02, 0.1))
            world.fail_in_sync = random.choice((0.0, 0.0, 0.003))
        world.note(
            f"seed {seed}: {self.kind.name}, {count} brokers, factor {self.factor}, min ISR {self.min_isr}, "
            f"metadata.version {version}, eligible leader replicas {elr}"
        )

    def _create_topic(self, brokers: int) -> None:
        random = self.random
        configs = {"min.insync.replicas": str(self.min_isr), "index.interval.bytes": random.choice(("4096", "100"))}
        if self.kind is Kind.UNCLEAN:
            configs["unclean.leader.election.enable"] = "true"
        self.assignments = [
            tuple(random.sample(range(1, brokers + 1), self.factor)) for _ in range(random.choice((1, 1, 2)))
        ]
        self.configs = configs

    def _create_clients(self) -> None:
        world, random = self.world, self.random
        # Deleted records take the state of their producers along, as in Kafka.
        world.history.is_exactly_once = random.random() < 0.75
        self.partitions = [TopicPartition(TOPIC, number) for number in range(len(self.assignments))]
        self.producers: list[Producer] = []
        self.transactional: list[TransactionalProducer] = []
        if world.history.is_exactly_once and not world.history.may_lose:
            self.transactional = [
                TransactionalProducer(world, number, self.partitions) for number in range(random.randint(0, 2))
            ]
        self.consumers: list[Consumer] = []
        for number, partition in enumerate(self.partitions):
            self.producers += [
                Producer(world, f"all{number}", partition, ACKS_ALL),
                Producer(world, f"once{number}", partition, ACKS_ALL, producer_id=100 + number, epoch=0),
            ]
            if random.random() < 0.3:
                self.producers.append(Producer(world, f"one{number}", partition, 1))
            self.consumers += [
                Consumer(world, partition, 0, from_any=False),
                Consumer(world, partition, 1, from_any=self.kind is Kind.KILLED and random.random() < 0.5),
            ]

    # -- steps

    def run(self) -> None:
        """Takes all steps, heals the cluster and checks it."""
        world, random = self.world, self.random
        for broker in world.brokers.values():
            broker.start()
        self._publish_topic()
        for _ in range(STEPS):
            choice = random.random()
            if choice < self.faults:
                random.choice(self.FAULTS)(self)
            elif choice < 0.5:
                world.advance(int(10 ** (random.random() * LONGEST_STEP)))
            elif choice < 0.9:
                self._produce()
            else:
                self._consume()
        self.heal()

    def _publish_topic(self) -> None:
        """Creates the topic once its brokers are running."""
        controller = self.world.controller
        self._wait(self._are_running, "the start")
        rules = PlacementRules(broker_config(), new_topic_id=lambda: b"t" * 16)
        topic = NewTopic(TOPIC, assignments=list(enumerate(self.assignments)), configs=self.configs)
        created = controller.commit(create_topics(controller.image, [topic], rules))
        assert created[TOPIC].error.error == 0, created

    def _wait(self, condition: Callable[[], bool], purpose: str) -> None:
        world = self.world
        deadline_ms = world.now_ms + HEALED_WITHIN_MS
        while not condition():
            if world.now_ms > deadline_ms:
                raise InvariantBroken(f"{purpose} takes more than {HEALED_WITHIN_MS} ms: {self._describe()}")
            world.advance(100)

    def _describe(self) -> str:
        partitions = {str(name): state for name, state in self.world.controller.partitions().items()}
        brokers = {broker.broker_id: broker.state.name for broker in self.world.brokers.values()}
        busy = [producer.name for producer in self.producers if producer.is_busy]
        busy += [each.name for transactional in self.transactional for each in transactional.writers]
        return f"{partitions}, {brokers}, busy producers: {busy}"

    def _produce(self) -> None:
        for producer in self.producers:
            producer.send()
        for transactional in self.transactional:
            transactional.step()

    def _consume(self) -> None:
        for consumer in self.consumers:
            consumer.poll()
            if self.random.random() < 0.3:
                consumer.find_end()

    def _broker(self) -> Broker:
        """Returns a random broker, which in every second call is one that leads a partition, if there is a leader."""
        random, brokers = self.random, self.world.brokers
        if random.random() < 0.5:
            leaders = [each.leader for each in self.world.controller.partitions().values() if each.leader != NO_LEADER]
            if leaders:
                return brokers[random.choice(leaders)]
        return random.choice(list(brokers.values()))

    def _kill(self) -> None:
        broker = self._broker()
        if broker.is_alive and self.world.may_die(broker):
            broker.kill()

    def _lose_power(self) -> None:
        broker = self._broker()
        if broker.is_alive and self.world.may_lose_power(broker):
            broker.lose_power()
        else:
            self._kill()

    def _kill_all(self) -> None:
        for broker in self.world.brokers.values():
            if broker.is_alive and self.world.may_die(broker) and self.random.random() < 0.8:
                broker.kill()

    def _start(self) -> None:
        dead = [broker for broker in self.world.brokers.values() if not broker.is_alive]
        if dead:
            self.random.choice(dead).start()

    def _bounce(self) -> None:
        """Kills a broker and starts it at once, before its session ends."""
        broker = self._broker()
        if broker.is_alive and self.world.may_die(broker):
            if self.world.may_lose_power(broker) and self.random.random() < 0.5:
                broker.lose_power()
            else:
                broker.kill()
            broker.start()

    def _stop(self) -> None:
        broker = self._broker()
        if broker.state is State.RUNNING and not broker.is_paused and self.world.may_die(broker):
            broker.receive(broker.stop)

    def _pause(self) -> None:
        broker = self._broker()
        if broker.is_alive:
            broker.pause()

    def _resume(self) -> None:
        for broker in self.world.brokers.values():
            if broker.is_paused and self.random.random() < 0.7:
                broker.resume()

    def _cut(self) -> None:
        """Cuts brokers off from each other, and perhaps from the controller."""
        self.world.cut_off((CONTROLLER, *self.world.brokers), 0.4)

    def _join(self) -> None:
        self.world.join()

    def _housekeep(self) -> None:
        """Runs a periodic task of a broker."""
        broker = self._broker()
        if not broker.is_accepting:
            return
        logs = broker.log_manager

        def flush() -> None:
            for log in logs.logs():
                log.flush()

        def roll() -> None:
            for log in logs.logs():
                log.roll()

        tasks: tuple[Callable[[], None], ...] = (
            broker.manager.checkpoint_high_watermarks,
            logs.checkpoints.write_recovery_points,
            logs.checkpoints.write_log_start_offsets,
            flush,
            roll,
        )
        broker.receive(self.random.choice(tasks))

    def _fail_over(self) -> None:
        controller = self.world.controller
        controller.fail_over()
        controller.is_available = self.random.random() < 0.5

    def _return_controller(self) -> None:
        self.world.controller.is_available = True

    def _balance(self) -> None:
        self.world.controller.balance()

    def _reassign(self) -> None:
        partition = self.random.choice(self.partitions)
        replicas = tuple(self.random.sample(sorted(self.world.brokers), self.factor))
        self.world.controller.reassign(partition, replicas if self.random.random() < 0.8 else None)

    def _delete_records(self) -> None:
        """Deletes a part of the records below the high watermark of a leader."""
        partition = self.random.choice(self.partitions)
        broker = self._broker()
        if self.world.history.is_exactly_once or not broker.is_accepting:
            return

        def delete() -> None:
            replica = broker.manager.partitions.get(partition)
            if replica is None or not replica.is_leader:
                return
            history = self.world.history
            start, high = replica.log.log_start_offset, replica.log.high_watermark
            offset = start + int((high - start) * self.random.random())
            history.deleted[partition] = max(history.deleted_before(partition), offset)
            try:
                replica.delete_records_on_leader(offset)
                replica.log.delete_old_segments()
            except ApiError as error:
                self.world.note(f"DeleteRecords refused: {error}")

        broker.receive(delete)

    FAULTS: Sequence[Callable[[Schedule], None]] = (
        _kill,
        _lose_power,
        _kill_all,
        _start,
        _start,
        _start,
        _bounce,
        _bounce,
        _stop,
        _pause,
        _resume,
        _resume,
        _cut,
        _join,
        _join,
        _housekeep,
        _housekeep,
        _housekeep,
        _fail_over,
        _return_controller,
        _return_controller,
        _balance,
        _reassign,
        _delete_records,
    )

    # -- the end

    def heal(self) -> None:
        """Ends all faults, and checks that the cluster becomes complete and that nothing is lost."""
        world = self.world
        world.note("healed")
        world.join()
        world.drop = world.duplicate = world.slow = world.fail_in_sync = 0.0
        world.controller.is_available = True
        for broker in world.brokers.values():
            if broker.is_paused:
                broker.resume()
        self._wait(self._is_healed, "healing")
        for producer in self.producers:
            producer.send()
        self._wait(self._have_produced, "producing")
        self._wait(self._is_complete, "replication")
        for partition, state in world.controller.partitions().items():
            world.history.check_replicas(partition, [world.brokers[each] for each in state.replicas])
        self._wait(self._have_consumed, "consuming")
        for consumer in self.consumers:
            self._check_transactions(consumer)

    def _have_produced(self) -> bool:
        for transactional in self.transactional:
            transactional.finish()
        return not any(producer.is_busy for producer in self.producers) and all(
            transactional.is_idle for transactional in self.transactional
        )

    def _are_running(self) -> bool:
        """Starts the brokers that do not run; returns whether all have the newest metadata and serve clients."""
        brokers = self.world.brokers.values()
        for broker in brokers:
            if not broker.is_alive:
                broker.start()
        return all(broker.state is State.RUNNING and broker.has_metadata() for broker in brokers)

    def _is_healed(self) -> bool:
        return self._are_running() and all(_is_whole(state) for state in self.world.controller.partitions().values())

    def _is_complete(self) -> bool:
        """Returns whether all replicas have the same end and high watermark."""
        world = self.world
        for partition, state in world.controller.partitions().items():
            logs = [world.brokers[each].manager.partitions[partition].log for each in state.replicas]
            ends = {(log.log_end_offset, log.high_watermark, log.last_stable_offset) for log in logs}
            if len(ends) > 1 or len(set(next(iter(ends)))) > 1:
                return False
        return True

    def _have_consumed(self) -> bool:
        world, is_done = self.world, True
        for consumer in self.consumers:
            leader = world.brokers[world.controller.partitions()[consumer.partition].leader]
            if consumer.position < leader.manager.partitions[consumer.partition].log.log_end_offset:
                is_done = False
                consumer.poll()
        return is_done

    def _check_transactions(self, consumer: Consumer) -> None:
        """Checks that read_committed has shown each record of the committed transactions once."""
        if not consumer.isolation_level:
            return
        delivered = [entry for entry in consumer.delivered if entry.startswith(b"transaction")]
        expected = {
            b"%s:%d" % (writer.name, number)
            for transactional in self.transactional
            for writer in transactional.committed
            if writer.partition == consumer.partition
            for number in range(writer.sent)
        }
        if len(delivered) != len(expected) or set(delivered) != expected:
            raise InvariantBroken(f"read_committed of {consumer.partition}: {set(delivered) ^ expected} differ")

    def close(self) -> None:
        for broker in self.world.brokers.values():
            broker.close()


def _is_whole(partition: PartitionImage) -> bool:
    return (
        partition.leader != NO_LEADER
        and set(partition.isr) == set(partition.replicas)
        and not (partition.adding_replicas or partition.removing_replicas)
    )


def run_seed(seed: int, *, is_traced: bool = False) -> Schedule:
    """Runs the schedule of a seed; an InvariantBroken names the seed."""
    root = tempfile.mkdtemp(prefix="replication-", dir=MEMORY if MEMORY.is_dir() else None)
    schedule = Schedule(seed, root, is_traced=is_traced)
    try:
        schedule.run()
    except Exception as error:
        if is_traced:
            print("\n".join(schedule.world.trace or []))
        raise InvariantBroken(f"seed {seed} ({schedule.kind.name}): {type(error).__name__}: {error}") from error
    finally:
        schedule.close()
        shutil.rmtree(root, ignore_errors=True)
    return schedule
