// A member of a group with KafkaJS: see member.py.

const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

async function main() {
  const [bootstrap, groupId, topic, , , sessionTimeout] = process.argv.slice(2);
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: Number(sessionTimeout),
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
    allowAutoTopicCreation: false,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = (payload.memberAssignment[topic] || []).sort((a, b) => a - b);
    process.stdout.write(`assigned\t${partitions}\n`);
  });
  consumer.on(consumer.events.REBALANCING, () => process.stdout.write("assigned\t\n"));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const eachBatch = async ({ batch, resolveOffset, commitOffsetsIfNecessary, heartbeat }) => {
    for (const message of batch.messages) resolveOffset(message.offset);
    const offset = String(BigInt(batch.lastOffset()) + 1n);
    await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: batch.partition, offset }] }] });
    for (const message of batch.messages) process.stdout.write(`record\t${batch.partition}\t${message.offset}\n`);
    await heartbeat();
  };
  await consumer.run({ eachBatchAutoResolve: false, autoCommit: true, eachBatch });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === "stop") break;
  }
  await consumer.disconnect();
  process.exit(0);
}

main();
