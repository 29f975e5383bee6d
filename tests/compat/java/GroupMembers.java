import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Hosts members of groups on Kafka's own client. The commands and events are described in group_members.py. */
public final class GroupMembers {
    private static final Map<String, String> STRATEGIES = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");

    public static void main(String[] arguments) throws Exception {
        Map<String, Member> members = new HashMap<>();
        List<Thread> threads = new ArrayList<>();
        // A member that fails for a reason nobody foresaw takes the whole program with it.
        Thread.setDefaultUncaughtExceptionHandler((thread, problem) -> {
            problem.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ", 3);
            String rest = words.length == 3 ? words[2] : "";
            if (words[0].equals("join")) {
                members.put(words[1], new Member(words[1], rest));
                threads.add(new Thread(members.get(words[1])));
                threads.get(threads.size() - 1).start();
            } else {
                members.get(words[1]).orders.add((words[0] + " " + rest).strip());
            }
        }
        members.values().forEach(member -> member.orders.add("leave"));
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static final class Member implements Runnable, ConsumerRebalanceListener {
        final ConcurrentLinkedQueue<String> orders = new ConcurrentLinkedQueue<>();
        private final String name;
        private final Map<String, String> options = new HashMap<>();
        private KafkaConsumer<byte[], byte[]> consumer;
        /** What it has told, by partition. The client's own positions leave out partitions whose leader has just changed. */
        private final Map<TopicPartition, OffsetAndMetadata> told = new HashMap<>();

        Member(String name, String words) {
            this.name = name;
            for (String word : words.split(" ")) {
                String[] pair = word.split("=", 2);
                options.put(pair[0], pair[1]);
            }
        }

        @Override
        public void run() {
            consumer = new KafkaConsumer<>(settings(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            if (options.containsKey("pattern")) {
                if (options.containsKey("protocol")) {
                    consumer.subscribe(new SubscriptionPattern(options.get("pattern")), this);
                } else {
                    consumer.subscribe(Pattern.compile(options.get("pattern")), this);
                }
            } else {
                consumer.subscribe(List.of(options.get("topics").split(",")), this);
            }
            boolean isLeaving = false;
            while (true) {
                isLeaving |= isToLeave(orders.poll());
                if (isLeaving && (!commits("revoked") || isSettled())) {
                    break;
                }
                poll();
            }
            consumer.close();
            say("left", "");
        }

        private Map<String, Object> settings() {
            Map<String, Object> settings = new HashMap<>(Map.of(
                    "bootstrap.servers", options.get("bootstrap"),
                    "group.id", options.get("group"),
                    "auto.offset.reset", "earliest",
                    "enable.auto.commit", String.valueOf(commits("auto")),
                    "metadata.max.age.ms", "500",
                    "fetch.max.wait.ms", "100"));
            if (options.containsKey("protocol")) {
                settings.put("group.protocol", options.get("protocol"));
            } else {
                String strategy = STRATEGIES.get(options.getOrDefault("strategy", "range"));
                settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + strategy);
                settings.put("session.timeout.ms", options.getOrDefault("session", "6000"));
                settings.put("heartbeat.interval.ms", "100");
            }
            if (options.containsKey("instance")) {
                settings.put("group.instance.id", options.get("instance"));
            }
            return settings;
        }

        private boolean commits(String when) {
            return options.getOrDefault("commit", "revoked").equals(when);
        }

        private boolean isToLeave(String order) {
            if (order == null) {
                return false;
            }
            if (order.equals("commit") && commitOrSay()) {
                say("committed", "");
            } else if (order.startsWith("seek ")) {
                String[] at = order.substring(5).split(":");
                consumer.seek(new TopicPartition(at[0], Integer.parseInt(at[1])), Long.parseLong(at[2]));
            }
            return order.equals("leave");
        }

        private void poll() {
            List<String> positions = new ArrayList<>();
            try {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                    told.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    positions.add(record.topic() + ":" + record.partition() + ":" + record.offset());
                }
            } catch (KafkaException problem) {
                say("refused", problem.getClass().getSimpleName());
            }
            if (!positions.isEmpty()) {
                say("read", String.join(" ", positions));
            }
        }

        /** Commits; false where that should be tried again after the next poll. */
        private boolean isSettled() {
            try {
                consumer.commitSync(told);
            } catch (RebalanceInProgressException problem) {
                return false;
            } catch (KafkaException problem) {
                say("refused", problem.getClass().getSimpleName());
            }
            return true;
        }

        private boolean commitOrSay() {
            try {
                consumer.commitSync();
                return true;
            } catch (KafkaException problem) {
                say("refused", problem.getClass().getSimpleName());
                return false;
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", names(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (commits("revoked") && !partitions.isEmpty()) {
                try {
                    consumer.commitSync(told);
                } catch (KafkaException problem) {
                    say("refused", problem.getClass().getSimpleName());
                }
            }
            told.keySet().removeAll(partitions);
            say("revoked", names(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            told.keySet().removeAll(partitions);
            say("lost", names(partitions));
        }

        private static String names(Collection<TopicPartition> partitions) {
            return partitions.stream().map(at -> at.topic() + ":" + at.partition()).collect(Collectors.joining(" "));
        }

        private void say(String event, String words) {
            synchronized (System.out) {
                System.out.println((name + " " + event + " " + words).strip());
                System.out.flush();
            }
        }
    }
}
