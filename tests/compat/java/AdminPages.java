import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** What web consoles ask of Kafka's admin client, in one go; prints one line for each answer. */
public class AdminPages {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all().get();
            var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            int node = cluster.nodes().get().iterator().next().id();
            say("cluster", cluster.nodes().get().size() + " " + cluster.authorizedOperations().get().size());
            say("features", admin.describeFeatures().featureMetadata().get() != null);
            say("listed", admin.listTopics().names().get().contains(topic));
            var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            say("partitions", described.partitions().size());
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            var broker = new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(node));
            var change = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
            var configs = admin.describeConfigs(List.of(resource, broker)).all().get();
            say("policy", configs.get(resource).get("cleanup.policy").value());
            say("broker settings", configs.get(broker).entries().size() > 50);
            var partition = new TopicPartition(topic, 0);
            for (var spec : List.of(OffsetSpec.latest(), OffsetSpec.earliest(), OffsetSpec.maxTimestamp(),
                    OffsetSpec.earliestLocal(), OffsetSpec.latestTiered())) {
                var offset = admin.listOffsets(Map.of(partition, spec)).all().get().get(partition);
                say(spec.getClass().getSimpleName(), offset.offset());
            }
            var directories = admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node);
            say("in directories", directories.values().stream()
                    .flatMap(directory -> directory.replicaInfos().keySet().stream())
                    .filter(found -> found.topic().equals(topic)).count());
            say("producers", admin.describeProducers(List.of(partition)).all().get().get(partition)
                    .activeProducers().size());
            say("moving", admin.listPartitionReassignments().reassignments().get().size());
            say("election", refused(() ->
                    admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get()
                            .get(partition).ifPresent(error -> { throw new IllegalStateException(error); }),
                    ElectionNotNeededException.class));
            say("acls", refused(() -> admin.describeAcls(AclBindingFilter.ANY).values().get(),
                    SecurityDisabledException.class));
            say("groups", admin.listGroups().all().get().size() >= 0);
            var entity = new ClientQuotaEntity(Map.of("client-id", topic));
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                    List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
            say("quotas", new TreeMap<>(admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get()
                    .get(entity)));
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                    List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all().get();
            say("credentials", admin.describeUserScramCredentials().all().get().size());
            admin.deleteTopics(List.of(topic)).all().get();
            say("deleted", true);
        }
    }

    private interface Call {
        void make() throws Exception;
    }

    private static String refused(Call call, Class<?> expected) throws Exception {
        try {
            call.make();
        } catch (ExecutionException | IllegalStateException error) {
            if (expected.isInstance(error.getCause())) {
                return expected.getSimpleName();
            }
            throw error;
        }
        return "answered";
    }

    private static void say(String what, Object answer) {
        System.out.println(what + ": " + answer);
    }
}
