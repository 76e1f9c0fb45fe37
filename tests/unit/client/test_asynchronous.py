"""The client for asyncio: awaited deliveries, polls that are cancelled, and records that are kept for the next poll."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafkapy.client import ApiError, ArrowBatches, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceResponse
from tests.harness.client_log import LogBrokers

T0 = TopicPartition("t", 0)


@pytest.fixture
def brokers():
    harness = LogBrokers()
    harness.fill("t", [f"a{number}" for number in range(30)])
    harness.produced = 0
    harness.refusal = Error.NONE

    def produce(request, version):
        (topic,) = request.topic_data
        result = ProduceResponse.PartitionProduceResponse(index=0, error_code=int(harness.refusal))
        if not harness.refusal:
            result.base_offset = harness.produced
            harness.produced += 1
        return ProduceResponse(
            responses=[ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=[result])]
        )

    harness.answers[ApiKey.PRODUCE] = produce
    yield harness
    harness.close()


def producer_of(brokers):
    return brokers.async_producer(enable_idempotence=False, linger_ms=0)


async def cancel_after(consumer, method, **options):
    """Cancels a poll whose thread has got records and has not returned them yet."""
    synchronous = consumer.consumer
    poll = getattr(synchronous, method)
    woken = threading.Event()
    loop = asyncio.get_running_loop()

    def poll_and_wait(timeout, **more):
        found = poll(timeout, **more)
        assert found
        loop.call_soon_threadsafe(task.cancel)
        assert woken.wait(60)
        return found

    setattr(synchronous, method, poll_and_wait)
    synchronous.wakeup = lambda: woken.set() or type(synchronous).wakeup(synchronous)
    task = asyncio.create_task(getattr(consumer, method)(10, **options))
    with pytest.raises(asyncio.CancelledError):
        await task
    delattr(synchronous, method)
    del synchronous.wakeup


def test_an_enqueued_record_has_a_future_of_its_delivery(brokers):
    async def run():
        async with producer_of(brokers) as producer:
            first = await producer.enqueue("t", "a")
            assert not first.done()
            assert await producer.flush(10)
            second = await producer.enqueue("t", "b")
            await producer.flush(10)
            return (await first).offset, (await second).offset

    assert asyncio.run(run()) == (0, 1)


def test_an_error_of_a_delivery_is_raised_by_its_future(brokers):
    brokers.refusal = Error.TOPIC_AUTHORIZATION_FAILED

    async def run():
        async with producer_of(brokers) as producer:
            delivery = await producer.enqueue("t", "a")
            await producer.flush(10)
            with pytest.raises(ApiError) as raised:
                await delivery
            return raised.value.error

    assert asyncio.run(run()) is Error.TOPIC_AUTHORIZATION_FAILED


def test_a_cancelled_delivery_is_ignored_when_it_ends(brokers):
    async def run():
        async with producer_of(brokers) as producer:
            delivery = await producer.enqueue("t", "a")
            delivery.cancel()
            await producer.flush(10)
            await asyncio.sleep(0)
            return delivery.cancelled()

    assert asyncio.run(run())
    assert brokers.produced == 1


def test_records_are_iterated_and_committed(brokers):
    async def run():
        async with brokers.async_consumer(
            auto_offset_reset="earliest", group_id="g", enable_auto_commit=False
        ) as consumer:
            consumer.assign([T0])
            found = []
            async for record in consumer:
                found.append(record.offset)
                if len(found) == 25:
                    break
            await consumer.commit({T0: 25})
            async for record in consumer:
                found.append(record.offset)
                if len(found) == 30:
                    break
            return found

    assert asyncio.run(run()) == list(range(30))
    assert brokers.committed[T0].offset == 25


def test_records_of_a_cancelled_poll_are_read_again(brokers):
    async def run():
        async with brokers.async_consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            await cancel_after(consumer, "poll")
            return (await consumer.poll(10))[0].offset

    assert asyncio.run(run()) == 0


def test_columns_of_a_cancelled_poll_are_returned_by_the_next(brokers):
    async def run():
        async with brokers.async_consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            await cancel_after(consumer, "poll_arrow", columns=["offset"])
            first = await consumer.poll_arrow(10)
            assert isinstance(first, ArrowBatches) and first[0].columns == ("offset",)
            second = await consumer.poll_arrow(10, columns=["offset", "value"])
            return first.row_count, second.row_count, consumer.consumer.position(T0)

    assert asyncio.run(run()) == (10, 10, 20)


def test_a_wakeup_of_a_cancelled_poll_does_not_reach_the_next(brokers):
    brokers.logs[T0] = []

    async def run():
        async with brokers.async_consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(consumer.poll(1_000_000), 0.05)
            return await consumer.poll(0.1)

    assert asyncio.run(run()) == []
