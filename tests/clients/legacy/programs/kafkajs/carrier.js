// KafkaJS: see PROTOCOL.md. It knows no consumer without a group, so a group of its own is made up for one.
// Its packages lie where NODE_PATH says. Its one argument, in JSON, has more settings: those of the class Kafka, and
// `oauthToken`, a token for OAUTHBEARER.
"use strict";

const { randomUUID } = require("crypto");
const readline = require("readline");
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
const lz4 = require("lz4-napi");
const { ZstdCodec } = require("zstd-codec");

const DEADLINE_MS = 100_000;
const BATCH = 500;
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

async function plugInCodecs() {
  // streaming: Java's frames do not say how much is in them
  const zstd = await new Promise((resolve) => ZstdCodec.run((found) => resolve(new found.Streaming())));
  CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  });
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
  });
}

const { oauthToken, ...settings } = JSON.parse(process.argv[2] || "{}");
if (oauthToken) {
  settings.sasl = { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: oauthToken }) };
}
const kafkaAt = (bootstrap) =>
  new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 5 }, ...settings });
const bytes = (text) => (text === "-" ? null : Buffer.from(text, "hex"));
const hex = (buffer) => (buffer === null || buffer === undefined ? "-" : buffer.toString("hex"));

function parsed(line) {
  const [partition, , timestamp, key, value, pairs] = line.split("\t");
  const headers = {};
  for (const pair of pairs.split(",").filter(Boolean)) {
    const [name, text] = pair.split("=");
    const known = Buffer.from(name, "hex").toString();
    headers[known] = known in headers ? [headers[known], bytes(text)].flat() : bytes(text);
  }
  return { partition: Number(partition), timestamp, key: bytes(key), value: bytes(value), headers };
}

function lineOf(partition, message) {
  const pairs = Object.entries(message.headers || {}).flatMap(([name, values]) =>
    [values].flat().map((value) => `${Buffer.from(name).toString("hex")}=${hex(value)}`)
  );
  const { offset, timestamp, key, value } = message;
  return [partition, offset, timestamp, hex(key), hex(value), pairs.join(",")].join("\t") + "\n";
}

async function produce(lines, bootstrap, topic, codec, count) {
  const producer = kafkaAt(bootstrap).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  try {
    for (let sent = 0; sent < Number(count); sent += BATCH) {
      const messages = [];
      while (messages.length < Math.min(BATCH, Number(count) - sent)) {
        messages.push(parsed((await lines.next()).value));
      }
      await producer.send({ topic, acks: -1, compression: TYPES[codec], messages });
    }
  } finally {
    await producer.disconnect();
  }
  return Number(count);
}

async function consume(lines, bootstrap, topic, partitions, count, group) {
  const groupId = group === "-" ? `made-up-${randomUUID()}` : group;
  const consumer = kafkaAt(bootstrap).consumer({ groupId, maxWaitTimeInMs: 200, allowAutoTopicCreation: false });
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    return await received(consumer, topic, Number(count));
  } finally {
    await consumer.disconnect();
  }
}

function received(consumer, topic, wanted) {
  let seen = 0;
  return new Promise((resolve, reject) => {
    const tooLate = () => reject(new Error(`only ${seen} of ${wanted} records`));
    const timer = setTimeout(tooLate, DEADLINE_MS);
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachBatch = async ({ batch, resolveOffset, commitOffsetsIfNecessary, heartbeat }) => {
      for (const message of batch.messages) {
        process.stdout.write(lineOf(batch.partition, message));
        resolveOffset(message.offset);
      }
      const offset = String(BigInt(batch.lastOffset()) + 1n);
      await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: batch.partition, offset }] }] });
      await heartbeat();
      seen += batch.messages.length;
      if (seen >= wanted) {
        clearTimeout(timer);
        resolve(seen);
      }
    };
    consumer.run({ eachBatchAutoResolve: false, autoCommit: true, eachBatch }).catch(reject);
  });
}

async function main() {
  await plugInCodecs();
  const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const [command, ...given] = line.value.split("\t");
    const count = await { produce, consume }[command](lines, ...given);
    process.stdout.write(`ok\t${count}\n`);
  }
}

// After a failure the lines that follow are nobody's: the program ends.
main().catch((error) => {
  console.error(error);
  process.stdout.write(`error\t${String(error).replace(/\s+/g, " ")}\n`, () => process.exit(1));
});
