"""The catalogue of a node's own settings: what Kafka has no name for.

They are read when the node starts. Where one needs another, `config.load` says so.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.records import ALL_ROLES
from ropewalk.metadata.settings.setting import Change, Kind, Setting
from ropewalk.security.protocols import SecurityProtocol

SECRET_CHARACTERS_MIN: Final = 16
"""Whoever records a handshake between nodes can try secrets against it at leisure."""

WEBHOOK_SECRET: Final = "alerts.webhook.secret.file"

NODE_SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "node.data",
            Kind.STRING,
            "./ropewalk-data",
            "The directory that holds everything this node keeps.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.listen",
            Kind.STRING,
            "127.0.0.1:9092",
            "Where Kafka clients connect, as HOST:PORT; port 0 takes any free one, none leaves the door out. It is the short form for one listener; "
            "`listeners` names several.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.advertise",
            Kind.STRING,
            "",
            "The HOST:PORT that clients are told to use, where it differs from the one listened on.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.security.protocol",
            Kind.STRING,
            "PLAINTEXT",
            "What is spoken at kafka.listen: SSL is TLS.",
            choices=tuple(SecurityProtocol),
            change=Change.READ_ONLY,
        ),
        Setting(
            "http.listen",
            Kind.STRING,
            "127.0.0.1:9644",
            "Where metrics and health are served over HTTP, as HOST:PORT; port 0 takes any free one, none leaves it out.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "http.security.protocol",
            Kind.STRING,
            "PLAINTEXT",
            "What is spoken at http.listen: SSL is https, with the certificate of ssl.keystore.location.",
            choices=("PLAINTEXT", "SSL"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "http.hosts",
            Kind.LIST,
            "",
            "Names by which clients may ask for pages of http.listen, besides localhost, its own host and addresses in figures; `*` is any. Others are "
            "refused, since a web page could have made its own name mean this address.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "http.metrics.open",
            Kind.BOOLEAN,
            "false",
            "Whether metrics and health, which name topics and groups, are told to whoever reaches http.listen, where what callers may do is "
            "decided by rules. On a loopback address they always are.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "console.enabled",
            Kind.BOOLEAN,
            "true",
            "Whether the web console is served at http.listen, under /console/. On a loopback address it is open if a Kafka listener is; elsewhere "
            "it is served over TLS and asks for a login.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "console.readonly",
            Kind.BOOLEAN,
            "false",
            "Whether the console refuses every change, whoever asks for it.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "console.messages",
            Kind.STRING,
            "on",
            "Whether the console shows what records hold to those who may read them.",
            choices=("on", "off"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "ssl.principal.from",
            Kind.STRING,
            "rules",
            "Where in a client certificate the name of a user is: `cn`, `san.dns` and `san.uri` take the one name of that kind, `rules` the subject by "
            "ssl.principal.mapping.rules.",
            choices=("rules", "cn", "san.dns", "san.uri"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "ssl.crl.location",
            Kind.STRING,
            "",
            "A PEM file of revoked client certificates, with a list of every authority in ssl.truststore.location. It is read again when it changes.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.listen",
            Kind.STRING,
            "127.0.0.1:9324",
            "Where SQS clients connect, as HOST:PORT; port 0 takes any free one, none leaves the door out. The usual port is ElasticMQ's, which "
            "local set-ups name already.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.security.protocol",
            Kind.STRING,
            "PLAINTEXT",
            "What is spoken at sqs.listen: SSL is https, with the certificate of ssl.keystore.location.",
            choices=("PLAINTEXT", "SSL"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.advertise",
            Kind.STRING,
            "",
            "The HOST:PORT that addresses of queues begin with; empty is whatever address the client asked.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.credentials",
            Kind.STRING,
            "",
            "A TOML file of access keys, each a table with `secret`, the `user` whose it is and, for those who may administrate where no rules decide, `admin = true`; "
            "mode 0600. It is read again when it changes. Empty is development: any key will do, on a loopback address, and is nobody's in rules.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.credential.key.file",
            Kind.STRING,
            "",
            "A file of credential keys, each a line of Base64, of which secrets of access keys follow that have none in `sqs.credentials` (`derived_from`); mode 0600, the same on all nodes "
            "with an SQS door. It is read again when it changes. Made by `ropewalk user key add`.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "sqs.insecure",
            Kind.BOOLEAN,
            "false",
            "Whether SQS clients are served without credentials on an address that other machines can reach.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.route",
            Kind.STRING,
            "direct",
            "Where clients are sent for a partition: `direct` to its leader, or `proxy`, with which a node that is no broker names "
            "itself and passes requests on, so that brokers need no address that clients can reach.",
            choices=("direct", "proxy"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "proxy.protocol.networks",
            Kind.LIST,
            "",
            "Networks, as 192.0.2.0/28, of the proxies in front of this node: what connects from there to the Kafka, HTTP and SQS doors must begin with "
            "a header of the PROXY protocol, version 1 or 2, and has the address of the client that it names. Empty for none.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.roles",
            Kind.LIST,
            "broker,controller,frontend",
            "What this node does: `broker` holds partitions, `controller` may decide for the cluster, `frontend` serves clients.",
            choices=ALL_ROLES,
            change=Change.READ_ONLY,
        ),
        Setting(
            "cluster.secret",
            Kind.PASSWORD,
            "",
            f"What the nodes of a cluster prove to each other, at least {SECRET_CHARACTERS_MIN} characters, the same on all. "
            "A node without one stands alone.",
            change=Change.READ_ONLY,
        ),
        Setting(
            WEBHOOK_SECRET,
            Kind.STRING,
            "",
            "A file with the secrets that notices to alerts.webhook are signed with, whsec_ and Base64, one on each line. It is read each time.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "cluster.secret.file",
            Kind.STRING,
            "",
            "A file that holds the secret, for those who want it neither in a configuration nor in the environment. It is read again when it changes.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "cluster.secret.previous",
            Kind.PASSWORD,
            "",
            "The secret before, which is accepted as well while the secret is being changed; empty for none.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "cluster.secret.previous.file",
            Kind.STRING,
            "",
            "A file that holds the secret before. It is read again when it changes, and may be empty or missing: then there is none.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "cluster.seeds",
            Kind.LIST,
            "",
            "Peer addresses of nodes to ask for the cluster, as HOST:PORT; a name may have several addresses.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.listen",
            Kind.STRING,
            "127.0.0.1:9192",
            "Where the other nodes of the cluster connect, as HOST:PORT; port 0 takes any free one. A node without cluster.secret "
            "does not listen there.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.advertise",
            Kind.STRING,
            "",
            "The HOST:PORT that other nodes are told to use, where it differs from the one listened on.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.tls",
            Kind.STRING,
            "auto",
            "Whether nodes speak TLS with each other: `off`; `allow`, with those that speak it; `require`, with a certificate that each node makes for "
            "itself, since cluster.secret proves whose it is; `ca`, where an authority vouches for every node besides. `auto` is off where peer.listen is a "
            "loopback address, and else `require`, or `allow` before level 2 is in force.",
            choices=("auto", "off", "allow", "require", "ca"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.ssl.keystore.location",
            Kind.STRING,
            "",
            "A PEM file with the key and the certificate that this node shows to others, named ropewalk://CLUSTER/node/ID?roles=ROLES. It is read again "
            "when it changes. Empty: the node makes one at every start.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.ssl.key.password",
            Kind.PASSWORD,
            "",
            "The password of the key in peer.ssl.keystore.location.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.ssl.truststore.location",
            Kind.STRING,
            "",
            "A PEM file of the authorities that vouch for nodes, with peer.tls=ca. It is read again when it changes.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "peer.ssl.crl.location",
            Kind.STRING,
            "",
            "A PEM file of revoked certificates of nodes, with a list of every authority in peer.ssl.truststore.location. It is read again when it changes.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.home",
            Kind.STRING,
            "local",
            "Where the cluster's metadata lives: `local`, in the data directory of the one node that is controller, or `etcd`, "
            "which survives the loss of any node.",
            choices=("local", "etcd"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.endpoints",
            Kind.LIST,
            "",
            "URLs of etcd's members, as http://HOST:PORT or https://HOST:PORT.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.prefix",
            Kind.STRING,
            "/ropewalk/",
            "What the names of the cluster's keys in etcd begin with; clusters that share an etcd need one each.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.user",
            Kind.STRING,
            "",
            "The user that etcd knows; empty where it asks for none.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.password",
            Kind.PASSWORD,
            "",
            "The password of metadata.etcd.user.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.ca",
            Kind.STRING,
            "",
            "A PEM file of the authorities that vouch for etcd; empty for the system's.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.cert",
            Kind.STRING,
            "",
            "A PEM file with the certificate shown to etcd.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "metadata.etcd.key",
            Kind.STRING,
            "",
            "A PEM file with the key of metadata.etcd.cert.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.session.timeout.ms",
            Kind.INT,
            "6000",
            "How long the controller may hear nothing of a node before it takes its partitions from it.",
            minimum=100,
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.heartbeat.interval.ms",
            Kind.INT,
            "500",
            "How often a node tells the controller that it lives.",
            minimum=10,
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.drain.ms",
            Kind.INT,
            "0",
            "How long a node that stops goes on serving while /readyz says that it leaves, so that a load balancer sends nobody here any more; "
            "longer than that takes to notice, and 0 where there is none.",
            minimum=0,
            maximum=600_000,
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.reserve.bytes",
            Kind.LONG,
            "4194304",
            "Room kept back on the disk to empty it with when it is full, besides 1024 bytes for each partition; at most a "
            "thirty-second part of the file system.",
            minimum=1 << 16,
            change=Change.READ_ONLY,
        ),
        Setting(
            "telemetry.interval.ms",
            Kind.LONG,
            "10000",
            "How often samples of partitions, groups and the node are written to __telemetry; 0 is never, which is also "
            "the default where storage is memory.",
            minimum=0,
            change=Change.READ_ONLY,
        ),
        Setting(
            "audit.file",
            Kind.STRING,
            "",
            "Where this node writes who logged in, who was refused, and its own starts and stops, one JSON object on each line: a file, or - for standard error. "
            "Empty is nowhere.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "audit.topic",
            Kind.BOOLEAN,
            "true",
            "Whether this node copies who asked for changes to __audit, where it leads that topic, or makes it. Without effect where storage is "
            "memory.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.log.level",
            Kind.STRING,
            "info",
            "The least serious message that is logged.",
            choices=("debug", "info", "warning", "error"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.log.format",
            Kind.STRING,
            "auto",
            "Logs as text or as one JSON object per line; auto is text on a terminal.",
            choices=("auto", "text", "json"),
            change=Change.READ_ONLY,
        ),
    )
}
