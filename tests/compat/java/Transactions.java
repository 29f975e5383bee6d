import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies so many records of a topic to another, each in a transaction of its own together with its offset; every third attempt is aborted
 * and made again. Then a second producer takes over the transactional id. Prints what came of it, and what is committed.
 */
public final class Transactions {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        String out = topic + "-out";
        TopicPartition input = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer(bootstrap, topic);
                KafkaConsumer<String, String> consumer = consumer(bootstrap, "group-of-" + topic)) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            int copied = 0;
            int attempts = 0;
            while (copied < count) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(10))) {
                    if (copied == count) {
                        break;
                    }
                    while (true) {
                        producer.beginTransaction();
                        producer.send(new ProducerRecord<>(out, record.key(), record.value()));
                        producer.sendOffsetsToTransaction(
                                Map.of(input, new OffsetAndMetadata(record.offset() + 1)), consumer.groupMetadata());
                        if (++attempts % 3 == 0) {
                            producer.flush();
                            producer.abortTransaction();
                            continue;
                        }
                        producer.commitTransaction();
                        copied++;
                        break;
                    }
                }
            }
            System.out.println("attempts: " + attempts);
            try (KafkaProducer<String, String> heir = producer(bootstrap, topic)) {
                heir.initTransactions();
                heir.beginTransaction();
                heir.send(new ProducerRecord<>(out, "heir"));
                heir.commitTransaction();
            }
            try {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(out, "zombie"));
                producer.commitTransaction();
                System.out.println("zombie: committed");
            } catch (ProducerFencedException fenced) {
                System.out.println("zombie: fenced");
            } catch (KafkaException failed) {
                try {
                    producer.abortTransaction();
                    System.out.println("zombie: aborted after " + failed);
                } catch (ProducerFencedException fenced) {
                    System.out.println("zombie: fenced");
                }
            }
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets("group-of-" + topic)
                    .partitionsToOffsetAndMetadata().get();
            System.out.println("committed: " + committed.get(input).offset());
            System.out.println("state: " + admin.describeTransactions(List.of(topic)).description(topic).get().state());
            System.out.println("listed: " + admin.listTransactions().all().get().stream()
                    .anyMatch(each -> each.transactionalId().equals(topic)));
            System.out.println("feature: " + admin.describeFeatures().featureMetadata().get().finalizedFeatures()
                    .get("transaction.version").maxVersionLevel());
        }
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "reader-of-" + topic)) {
            consumer.assign(List.of(new TopicPartition(out, 0)));
            consumer.seekToBeginning(consumer.assignment());
            StringBuilder read = new StringBuilder();
            long end = consumer.endOffsets(consumer.assignment()).values().iterator().next();
            while (consumer.position(new TopicPartition(out, 0)) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    read.append(read.isEmpty() ? "" : " ").append(record.value());
                }
            }
            System.out.println("read: " + read);
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", transactionalId);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }
}
