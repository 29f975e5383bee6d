import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads partition 0 of a topic from its beginning to a value, and prints the value of every record. */
public final class ReadTopic {
    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "enable.auto.commit", "false",
            "isolation.level", "read_" + arguments[2]);
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                    if (record.value().equals(arguments[3])) {
                        return;
                    }
                }
            }
        }
    }
}
