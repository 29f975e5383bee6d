// Random rules, and what Kafka's own StandardAuthorizer decides by them: a line each, for tests/security/acl_oracle.py.
//     AclOracle SEED ROUNDS QUESTIONS_PER_ROUND

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

public class AclOracle {
    static final String[] NAMES = {"a", "ab", "abc", "b", "*", "abd", "a*"};
    static final String[] USERS = {"alice", "bob"};
    static final String[] HOSTS = {"10.0.0.1", "10.0.0.2"};
    static final ResourceType[] TYPES = {ResourceType.TOPIC, ResourceType.GROUP};
    static final List<AclOperation> OPERATIONS = new ArrayList<>();

    record Context(String user, String host) implements AuthorizableRequestContext {
        public String listenerName() { return "SASL"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_SSL; }
        public KafkaPrincipal principal() { return new KafkaPrincipal("User", user); }
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException impossible) {
                throw new RuntimeException(impossible);
            }
        }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "oracle"; }
        public int correlationId() { return 0; }
    }

    static String one(Random random, String[] of) {
        return of[random.nextInt(of.length)];
    }

    static String said(ResourcePattern resource, String principal, String host, AclOperation operation, AclPermissionType permission) {
        return String.join(",", resource.resourceType().name(), resource.name(), resource.patternType().name(), principal, host,
            operation.name(), permission.name());
    }

    public static void main(String[] arguments) {
        Random random = new Random(Long.parseLong(arguments[0]));
        int rounds = Integer.parseInt(arguments[1]), questions = Integer.parseInt(arguments[2]);
        for (AclOperation operation : AclOperation.values())
            if (operation != AclOperation.UNKNOWN && operation != AclOperation.ANY) OPERATIONS.add(operation);
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        StringBuilder out = new StringBuilder();
        for (int round = 0; round < rounds; round++) {
            boolean open = random.nextInt(4) == 0;
            authorizer.configure(Map.of("super.users", "User:root", "allow.everyone.if.no.acl.found", String.valueOf(open)));
            authorizer.completeInitialLoad();
            Set<StandardAcl> rules = new LinkedHashSet<>();
            for (int count = random.nextInt(9); count > 0; count--)
                rules.add(new StandardAcl(
                    random.nextInt(4) == 0 ? ResourceType.GROUP : ResourceType.TOPIC, one(random, NAMES),
                    random.nextBoolean() ? PatternType.LITERAL : PatternType.PREFIXED,
                    "User:" + (random.nextInt(3) == 0 ? "*" : one(random, USERS)), random.nextBoolean() ? "*" : one(random, HOSTS),
                    OPERATIONS.get(random.nextInt(OPERATIONS.size())),
                    random.nextInt(3) == 0 ? AclPermissionType.DENY : AclPermissionType.ALLOW));
            Map<Uuid, StandardAcl> byId = new HashMap<>();
            for (StandardAcl rule : rules) byId.put(Uuid.randomUuid(), rule);
            authorizer.loadSnapshot(byId);
            out.append("rules ").append(open);
            for (StandardAcl rule : rules)
                out.append(' ').append(said(new ResourcePattern(rule.resourceType(), rule.resourceName(), rule.patternType()),
                    rule.principal(), rule.host(), rule.operation(), rule.permissionType()));
            out.append('\n');
            for (int question = 0; question < questions; question++) {
                AclOperation operation;
                do operation = OPERATIONS.get(random.nextInt(OPERATIONS.size())); while (operation == AclOperation.ALL);
                Context who = new Context(random.nextInt(9) == 0 ? "root" : one(random, USERS), one(random, HOSTS));
                ResourceType type = TYPES[random.nextInt(2)];
                String name = one(random, NAMES);
                Action action = new Action(operation, new ResourcePattern(type, name, PatternType.LITERAL), 1, false, false);
                out.append("may ").append(who.user()).append(' ').append(who.host()).append(' ').append(operation).append(' ')
                    .append(type).append(' ').append(name).append(' ').append(authorizer.authorize(who, List.of(action)).get(0)).append('\n');
            }
            Context who = new Context(one(random, USERS), one(random, HOSTS));
            AclOperation asked = random.nextBoolean() ? AclOperation.WRITE : AclOperation.READ;
            out.append("any ").append(who.user()).append(' ').append(who.host()).append(' ').append(asked).append(' ')
                .append(authorizer.authorizeByResourceType(who, asked, ResourceType.TOPIC)).append('\n');
            PatternType[] patterns = {PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED};
            ResourceType type = random.nextInt(2) == 0 ? ResourceType.ANY : ResourceType.TOPIC;
            String name = random.nextInt(3) == 0 ? null : one(random, NAMES);
            PatternType pattern = patterns[random.nextInt(4)];
            String principal = random.nextBoolean() ? null : "User:" + one(random, USERS);
            String host = random.nextInt(3) > 0 ? null : one(random, HOSTS);
            AclOperation operation = random.nextInt(3) > 0 ? AclOperation.ANY : OPERATIONS.get(random.nextInt(OPERATIONS.size()));
            AclPermissionType permission = random.nextInt(3) > 0 ? AclPermissionType.ANY : AclPermissionType.ALLOW;
            AclBindingFilter filter = new AclBindingFilter(new ResourcePatternFilter(type, name, pattern),
                new AccessControlEntryFilter(principal, host, operation, permission));
            out.append("find ").append(type).append(' ').append(name == null ? "-" : name).append(' ').append(pattern).append(' ')
                .append(principal == null ? "-" : principal).append(' ').append(host == null ? "-" : host).append(' ').append(operation)
                .append(' ').append(permission);
            for (AclBinding found : authorizer.acls(filter))
                out.append(' ').append(said(found.pattern(), found.entry().principal(), found.entry().host(), found.entry().operation(),
                    found.entry().permissionType()));
            out.append('\n');
            if (out.length() > 1 << 16) {
                System.out.print(out);
                out.setLength(0);
            }
        }
        System.out.print(out);
    }
}
