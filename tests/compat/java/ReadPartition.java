import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads records of partition 0 by assignment and prints one line for each: offset, key and value. */
public final class ReadPartition {
    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        long offset = Long.parseLong(arguments[2]);
        int count = Integer.parseInt(arguments[3]);
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", "false");
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, offset);
            while (count > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (count-- > 0) {
                        System.out.println(record.offset() + "\t" + record.key() + "\t" + record.value());
                    }
                }
            }
        }
    }
}
