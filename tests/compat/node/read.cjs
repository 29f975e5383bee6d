// Reads a topic by KafkaJS from its beginning to a value, and prints the value of every record: read.cjs BOOTSTRAP TOPIC ISOLATION LAST.
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, isolation, last] = process.argv.slice(2);

async function main() {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: `readers-of-${topic}-${isolation}`,
    readUncommitted: isolation !== "committed",
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((resolve) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        const value = message.value.toString();
        console.log(value);
        if (value === last) resolve();
      },
    });
  });
  await consumer.disconnect();
}

main();
