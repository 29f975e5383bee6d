import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes numbers until its input ends. The arguments and what it says are described in steady_writers.py. */
public final class SteadyWriter {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long pauseMs = Long.parseLong(arguments[3]);
        CountDownLatch end = new CountDownLatch(1);
        new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (java.io.IOException problem) {
                problem.printStackTrace();
            }
            end.countDown();
        }).start();
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            for (int sent = 0; !end.await(pauseMs, TimeUnit.MILLISECONDS); sent++) {
                int number = sent;
                ProducerRecord<String, String> record =
                        new ProducerRecord<>(topic, number % partitions, null, String.valueOf(number));
                producer.send(record, (metadata, problem) -> System.out.println(
                        problem == null ? "acknowledged " + number + " " + metadata.offset() : "refused " + number + " " + problem));
            }
        }
    }
}
