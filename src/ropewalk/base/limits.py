"""Every bound that is not a user's setting, with its reason.

A queue, buffer, batch, loop or wait without a limit is a way for one client to take the node down. They stand under headings, by what they bound.
"""

from typing import Final

# Connections, requests and their memory

SCRAM_MESSAGE_BYTES_MAX: Final = 4_096
"""A message of SCRAM: a name of 255 bytes, each of which may take three, and a nonce. Everything in it is parsed, by whoever comes."""

PLAIN_MESSAGE_BYTES_MAX: Final = 2_048
"""A message of PLAIN: a name twice, and a password. Whatever is longer than the block of a hash is as good as its digest."""

LOGIN_FRAME_BYTES_MAX: Final = 1 << 16
"""A frame of a client that has not said who it is. Tokens of the largest kind that are read have 16 KiB."""

LOGIN_MS_MAX: Final = 10_000
"""How long a client may take to say who it is, before its connection is closed: a few round trips and a moment of hashing. Whoever does not
log in takes the place of one who would."""

LOGIN_AGAIN_MS_MIN: Final = 1_000
"""How long after a login the next may begin on the same connection, as in Kafka: each costs work."""

LOGIN_STEPS_MAX: Final = 4
"""Requests by which one login may be carried out. SCRAM needs two, and a token that was refused two."""

LOGIN_FAREWELL_MS: Final = 200
"""From the answer to a login that failed to the end of its connection: some clients forget what they read together with the end."""

PASSWORD_CHECKS_WAITING_MAX: Final = 128
"""Clients that wait for a password of theirs to be hashed. Hashes are made one at a time, so that strangers keep at most one thread of the
pool busy; at the usual 10 ms each the last of the line waits for a little more than a second."""

PASSWORDS_REMEMBERED_MAX: Final = 4_096
"""Passwords that proved right and need not be hashed again for a while, some 200 bytes each; the longest unused are forgotten."""

PASSWORDS_REMEMBERED_MS: Final = 60_000
"""For how long. Tools that connect for every message would otherwise pay for a hash each time."""

BEARER_TOKEN_BYTES_MAX: Final = 1 << 14
"""A token that a client logs in with: an authority that puts a few hundred groups into one comes to half of that."""

OAUTHBEARER_MESSAGE_BYTES_MAX: Final = BEARER_TOKEN_BYTES_MAX + 2_048
"""The message that it comes in, with a name and extensions that some authorities want."""

BEARER_GROUPS_MAX: Final = 256
"""Groups that a token may name. Each is one more name to look for in every rule, for every request that is not remembered."""

JWKS_BYTES_MAX: Final = 1 << 18
"""The answer of an authority that is asked for its public keys, or a file of them: some hundred keys with their certificates."""

JWKS_KEYS_MAX: Final = 64
"""Public keys of one authority. The largest show a dozen."""

JWKS_ANSWER_MS_MAX: Final = 5_000
"""How long an authority may take to show its keys. A client whose key is not known yet waits for it, within the time that it has for its login."""

JWKS_UNKNOWN_KEY_MS: Final = 10_000
"""After a token that names a key nobody knows, how long until another such token has the keys asked for again, whatever it names: strangers can
have an authority asked this often, and no more. A key that is shown before it is used is known by then."""

JWKS_FILE_LOOK_MS: Final = 5_000
"""How often a file of public keys is looked at."""

RSA_KEY_BITS_MIN: Final = 2_048
"""Smaller keys of RSA can be had by whoever pays for it."""

RSA_KEY_BITS_MAX: Final = 8_192
"""Larger ones take a millisecond for every signature, on the event loop."""

TOKEN_LIFETIME_MS: Final = 3_600_000
"""How long one of the cluster's own tokens lasts, unless less or more is asked for."""

TOKEN_LIFETIME_MS_MAX: Final = 7 * 86_400_000
"""The longest that one may last, as Kafka's delegation tokens."""

TOKEN_CLOCK_SKEW_MS: Final = 30_000
"""How far the clocks of nodes may be apart for one to take what another has just issued."""

TOKEN_KEY_SIGNS_MS: Final = 30 * 86_400_000
"""How long one key signs tokens, before the next one is made."""

TOKEN_KEY_SETTLES_MS: Final = 10_000
"""Until a new key signs: every node that serves clients has heard of it by then, since one that hears nothing for so long is out of service."""

TOKEN_KEYS_MAX: Final = 16
"""Keys by which tokens are believed at one time. The usual number is two; changing them by hand makes more, for a week each."""

LISTEN_BACKLOG: Final = 1024
"""Connections the kernel may hold before we accept them: a whole fleet of clients reconnecting at once."""

DISK_THREADS: Final = 8
"""Threads for blocking calls. Cold reads of several consumers overlap; more would only queue at the disk."""

READ_BUFFER_BYTES_MIN: Final = 1 << 16
"""Smallest recycled read buffer; smaller reads share it."""

READ_BUFFERS_KEPT_BYTES: Final = 1 << 25
"""Read buffers kept for reuse. Sixteen responses of 2 MiB in flight is what a busy disk and loopback reach."""

CLIENT_BUFFERS_KEPT_BYTES: Final = 1 << 24
"""Buffers that a connection to a broker keeps for the answers to come: the largest that a follower asks of a leader fits."""

RECEIVE_BUFFER_BYTES_MIN: Final = 1 << 16
"""The receive buffer of a connection that has something to read. Ten thousand of them would take 640 MiB, so a
connection has one only while bytes of a request are in it."""

RECEIVE_BUFFERS_SPARE_MAX: Final = 64
"""Empty receive buffers kept for the next connection that reads. One is enough while requests arrive whole."""

RECEIVE_BUFFER_BYTES_KEPT: Final = 1 << 21
"""A buffer grown for one large frame is let go when it is empty again; up to this size a busy connection keeps it."""

REQUEST_BYTES_MAX: Final = 1 << 23
"""A request other than Produce. Decoded it may take thirty times as much; a fetch of 100,000 partitions fits."""

REQUEST_ELEMENTS_MAX: Final = 1 << 18
"""Structures, texts and tagged fields in one request. Each takes a microsecond and 150 bytes to decode and two bytes to send: a
Produce of 100 MiB full of empty topics would stop the node for a minute and take gigabytes. A fetch of 100,000 partitions fits."""

REQUEST_ITEMS_PER_TURN: Final = 100
"""Topics, groups or resources of one request that are answered before others have a turn: some five milliseconds."""

REQUEST_PARTITIONS_PER_TURN: Final = 256
"""Partitions that are described or encoded for one Metadata before others have a turn: some two milliseconds."""

METADATA_VERSIONS_ENCODED_MAX: Final = 4
"""Versions of Metadata in which topics are kept encoded, some 45 bytes for each partition. Clients of a cluster speak one or two."""

CREATED_TOPICS_MAX: Final = 5_000
"""Topics in one CreateTopics: the answer tells all settings of each, a hundred times as many bytes as were asked with."""

PRODUCE_PARTITIONS_MAX: Final = 1 << 14
"""Partitions in one Produce. Its batches are views of the receive buffer, so it cannot be worked off in turns; a producer that has
something for as many partitions of one node sends it in several requests anyway."""

CONNECTION_REQUESTS_MAX: Final = 4096
"""Requests of one connection that may be unanswered; reading pauses there. librdkafka pipelines without bound."""

CONNECTION_FRAMES_PER_TURN: Final = 64
"""Requests of one connection that are handled before the loop goes round. Clients that pipeline have some five under way;
going round costs some tens of microseconds, which nobody notices in sixty-four requests."""

CONNECTION_TURN_MS: Final = 2
"""How long they may take, beyond the one that is being handled: what a neighbour waits for each connection that asks without end."""

CONNECTION_ANSWER_BYTES_MAX: Final = 1 << 22
"""Bytes of answers that wait for an earlier answer of the same connection before it stops being read."""

CONNECTION_UNSENT_BYTES_MAX: Final = 1 << 16
"""Bytes the socket has not taken before the connection stops being read. uvloop writes more than this at once instead of
at the end of the loop's turn, which alone made consuming a fifth faster."""

ERROR_TEXT_CHARACTERS_MAX: Final = 1000
"""What an error says. Errors quote names that clients sent, up to 32,767 bytes each, and no answer can carry more than
that in one string."""

NODE_BUFFER_BYTES_MAX: Final = 1 << 29
"""What is being read, requests unanswered and answers untaken, of all connections together; beyond it reading pauses,
the largest first, and fetches wait. Half as much again may come in by small pieces, and one large request."""

BUDGET_SMALL_BYTES: Final = 1 << 18
"""Who holds no more than this goes on while the node's budget is spent: most requests, and their answers, are smaller."""

UNANSWERED_BYTES_PER_BYTE: Final = 10
"""What a request that waits for its answer is taken to hold for each byte it was sent in: many small objects."""

UNANSWERED_BYTES_PER_PARTITION: Final = 512
"""What a Produce that waits holds for each of its partitions; its records are in the log by then."""

FETCH_SESSION_PARTITIONS_MAX: Final = 500_000
"""Partitions in all fetch sessions together, about 600 bytes each: a thousand consumers of 500. A reader that finds no room
names all partitions in every fetch, as older clients do."""

FETCH_SESSION_KEPT_MS: Final = 120_000
"""How long a fetch session keeps its slot, used or not, when others want it; Kafka's figure."""

# TLS

KAFKA_LISTENERS_MAX: Final = 16
"""Listeners of one node for Kafka's clients: one for each network that these come from. Answers to Metadata are kept for each."""

CERTIFICATE_FILE_BYTES_MAX: Final = 1 << 20
"""A file of certificates, or of revocations: some ten thousand of these, which are looked through by every handshake."""

CERTIFICATE_END_LOOK_MS: Final = 3_600_000
"""How long a connection goes at most without a look at when its client's certificate ends: the wall clock may be set meanwhile."""

CERTIFICATES_LOOK_MS: Final = 10_000
"""How often files of certificates are looked at: they are read whole, and whoever is in a hurry sends SIGHUP."""

PROXY_HEADER_MS_MAX: Final = 3_000
"""From the connection of a proxy to the end of its header, which it sends with the first packet."""

PROXY_HEADER_BYTES_MAX: Final = 4_096
"""A header of the PROXY protocol with all that a proxy may add to it: names and certificates of a client that it spoke TLS with."""

PROXY_HEADERS_MAX: Final = 1_024
"""Connections of proxies, at one listener, whose headers have not come; the oldest goes when there are more."""

TLS_HANDSHAKE_MS_MAX: Final = 10_000
"""From the connection to the end of its handshake. A far client on a bad line needs two or three round trips of a second."""

TLS_HANDSHAKE_BYTES_MAX: Final = 1 << 16
"""What the other side may send before its handshake is done: a chain of several large certificates, and no more."""

TLS_HANDSHAKES_MAX: Final = 4096
"""Handshakes under way at one listener. Each costs some 20 KiB; a fleet that comes back at once is let in, and those who never go on are
the oldest, which go first."""

TLS_HANDSHAKES_PER_HOST_MAX: Final = 1024
"""The same from one address: one machine, or one proxy, with all of its clients."""

TLS_HANDSHAKES_PER_TURN: Final = 4
"""Steps of handshakes in one turn of the loop. A step takes up to half a millisecond (a signature with RSA of 2048 bits)."""

TLS_RECEIVE_BYTES: Final = 1 << 16
"""The one buffer of a thread that sockets with TLS are read into. What a paused connection leaves there is copied, so it bounds that, too."""

TLS_STEP_BYTES: Final = 1 << 15
"""What is given to OpenSSL at a time. Its buffer keeps the largest size it ever had, for each connection."""

TLS_WRITE_BYTES: Final = 1 << 18
"""What is encrypted before it is handed to the socket: sixteen records."""

# Files and batches

OPEN_FILES_MAX: Final = 4096
"""Segment files held open; least recently used ones are closed. Descriptor limits near 20,000 are common."""

DESCRIPTORS_WANTED: Final = 1 << 20
"""Open files the node allows itself where it may: one for every connection, and those of segments."""

BATCH_OPENED_BYTES_MAX: Final = 1 << 27
"""What one compressed batch may open to. It lies above socket.request.max.bytes (100 MiB), so whatever may be
sent plain may be sent compressed, and a bomb of one request costs no more than this."""

BATCH_RECORDS_MAX: Final = 1 << 20
"""Records in one batch. A compressed one can hold eighteen million empty records in a hundred kilobytes, or claim two thousand
million and hold none; a node that opens it pays for each. Producers stay a hundred times below."""

SYNC_FILES_SINGLY_MAX: Final = 1
"""Up to so many dirty files are synced one by one even where `syncfs` works: it is as quick, and it does
not wait for bytes that other programs have written to the same file system."""

SYNC_FILES_AT_ONCE_MAX: Final = 4
"""Up to so many dirty files are synced side by side without a thread, where the kernel can. On the machine this was measured on, one file took 0.16 ms
against 0.22 in a thread, four as long as one `syncfs` (0.30 ms) at less than half of its CPU, and six longer."""

# The metadata and its home

METADATA_LOG_BYTES_MAX: Final = 1 << 22
"""Size at which the metadata log is folded into a snapshot. Start-up replays at most this, in some 50 ms."""

TOPIC_SETTINGS_REMEMBERED_MAX: Final = 256
"""Sets of settings that are kept resolved. Topics that differ in their settings are few, unless somebody tries."""

METADATA_APPEND_BYTES_MAX: Final = 1 << 20
"""Records that the metadata log takes at once; a larger change is cut. etcd takes requests of 1.5 MiB unless told otherwise."""

ETCD_CONNECT_MS_MAX: Final = 500
"""To connect to a member of etcd. Members are near; one that takes longer is passed over for the next."""

ETCD_ATTEMPT_MS_MAX: Final = 1_000
"""For one member to answer a question that may be put to another. etcd elects a leader in one to two seconds."""

ETCD_ASK_MS_MAX: Final = 4_000
"""For a question to be answered by any member: an election of etcd's, and a member that does not answer."""

ETCD_TELL_MS_MAX: Final = 2_000
"""For a change to be answered. After that its outcome is not known, and the log is read instead of waiting longer."""

ETCD_ANSWER_BYTES_MAX: Final = 1 << 26
"""One answer of etcd's: as many appends as are read at once, in base64, and room to spare."""

ETCD_APPENDS_READ_MAX: Final = 16
"""Appends that are read from etcd at once; they have up to `METADATA_APPEND_BYTES_MAX` each."""

ETCD_CONNECTIONS_IDLE_MAX: Final = 4
"""Connections to etcd that are kept for the next request."""

ETCD_WATCH_SILENT_MS_MAX: Final = 2_000
"""Silence after which a watch is checked by reading. What it failed to bring is at most this late."""

ETCD_LEASE_S: Final = 6
"""How long a controller that is not heard of counts as alive to those who look at etcd alone."""

ETCD_SNAPSHOT_READS_MAX: Final = 5
"""Times a snapshot is read anew because another replaced it meanwhile; one is written every few megabytes."""

METADATA_CHANGES_WAITING_MAX: Final = 10_000
"""Changes of cluster facts that may wait for the ones before them; a burst of topic creations, not a flood."""

# The controller, and being a member

CONTROLLER_WATCH_MS: Final = 100
"""How often, at least, a standby looks whether the controller is still believed to be alive; news of it come at once."""

CONTROLLER_TAKE_OVER_RETRY_MS: Final = 500
"""Between attempts to become the controller while the metadata cannot be reached: etcd is not flooded when it comes back."""

CONTROLLER_SILENCE_MS_MAX: Final = 2_000
"""Silence of the controller, over connections that nobody closed, after which others ask each other whether to go on without it. A busy
one is heard of long before."""

FURTHEST_COPY_MS_MAX: Final = 1_000
"""For a node to say how far its copy of a partition is, before one out of sync is made to lead it. The operator waits."""

SECOND_OPINION_MS_MAX: Final = 400
"""For another node to say whether it hears of the controller. One that is slower is not counted on."""

CONTROLLER_HOLD_MS: Final = 1_000
"""How often, at least, the controller looks whether it still is one; the metadata log tells it at once, and refuses it anyway."""

LEAVE_MS_MAX: Final = 10_000
"""How long a node that stops waits for others to lead in its place. They are in sync, or they are not worth waiting for."""

DRAIN_ANSWERS_MS_MAX: Final = 5_000
"""How long a node that stops waits for requests under way to be answered: longer than a commit takes on a busy machine."""

SESSION_CHECK_MS: Final = 50
"""How often the controller looks for nodes that it no longer hears. It adds to the time that a partition is without a leader."""

MEMBERSHIP_CALL_MS: Final = 500
"""How long a heartbeat or a registration waits for its answer. A controller that takes longer is looked for again."""

JOIN_RETRY_MS: Final = 100
"""Between attempts to register, or to be heard by a controller that does not answer."""

SEEDS_LOOKED_UP_MS: Final = 10_000
"""How often the names of seeds are looked up. A node that found its cluster once hears of the others from it."""

METADATA_FETCH_WAIT_MS: Final = 5_000
"""How long a controller keeps a node waiting for news of the cluster before it says that there is none."""

METADATA_FETCH_RECORDS_MAX: Final = 4_000
"""Records of the metadata log in one answer: some 0.8 MB, which take either side less than ten milliseconds."""

METADATA_RETRY_MS: Final = 100
"""Before a node asks again for the metadata, after it could not be had."""

PEER_CALL_MS_MAX: Final = 2_000
"""What a call to another node may take beyond the time that it asks to be kept waiting."""

# Topics

TOPIC_PARTITIONS_MAX: Final = 10_000
"""Partitions of one topic. Every one costs a directory and a line in every Metadata answer."""

TOPIC_OWNER_CHARACTERS_MAX: Final = 255
"""Of a topic's owner: a name or an address, which every node remembers for every topic."""

# The client

CLIENT_REQUESTS_MAX: Final = 1024
"""Requests a client has unanswered on one connection before it waits: well below what a broker takes."""

CLIENT_CHUNKS_AHEAD: Final = 2
"""Answers of a partition that a consumer keeps before they are polled: one to read from, and one that came meanwhile."""

CLIENT_FETCH_SHORT_WAIT_MS: Final = 10
"""How long a fetch may wait that leaves out partitions because enough of them lies ready: their turn must not wait for others that are idle."""

CLIENT_LEADER_ONLY_MS: Final = 30_000
"""How long a consumer with a rack reads from the leader after the replica in its rack has failed: about as long as a leader may take to
see that itself (`replica.lag.time.max.ms`), and until then it would send the consumer there again."""

CLIENT_EPOCHS_KEPT: Final = 32
"""Leader epochs of a partition whose beginnings a consumer remembers: as many elections back it can tell where two histories part."""

CLIENT_STALE_EPOCH_ATTEMPTS: Final = 10
"""After so many looks at metadata that know less than was read already, a consumer says so: they may be another cluster's, or an old copy."""

CLIENT_KEYS_KEPT: Final = 8192
"""Keys whose hash a producer remembers: few keys make up most of a stream, and hashing takes longer than the rest of a `send`."""

CLIENT_RESPONSE_BYTES_MAX: Final = 1 << 28
"""The largest answer a client takes: Fetch's limit, a first batch of 100 MiB beyond it, and its headers."""

CLIENT_SECRET_BYTES_MAX: Final = 1 << 16
"""A file with a password or with profiles: the largest keys and tokens, and some dozens of profiles."""

CLIENT_SCRAM_ITERATIONS_MIN: Final = 4_096
"""How often a server must have a client hash its password: fewer times make it cheap to guess. As Java has it."""

CLIENT_SCRAM_ITERATIONS_MAX: Final = 131_072
"""How often it may. Kafka allows 16,384; more than this holds up the client's loop for longer than a tenth of a second, for every
connection."""

CLIENT_TOKEN_BYTES_MAX: Final = 1 << 16
"""The answer of a token's endpoint. Brokers take tokens of 16 KiB at most."""

CLIENT_TOKEN_KEPT: Final = 0.8
"""Of the life of a token that it is used for: what is left must do for the login that it was given for."""

CLIENT_LOGIN_KEPT_MIN: Final = 0.85
"""Of a session's life, after which a client may prove again who it is. As Java does it."""

CLIENT_LOGIN_KEPT_MAX: Final = 0.95
"""The same, after which it has: somewhere between the two, since many connections were made at the same time."""

CLIENT_LOGIN_AGAIN_MS: Final = 1_000
"""Between attempts to get a token for a session that is about to end."""

QUEUE_CLIENT_CONNECTIONS_MAX: Final = 64
"""Connections that one `Queue` has to the door of queues. Each carries one request at a time; more tasks than this wait for each other."""

QUEUE_CLIENT_ANSWER_BYTES_MAX: Final = 1 << 26
"""The largest answer a client of queues takes: ten messages of 1 MiB in all are escaped to six times that at most, and a look at a queue has many."""

QUEUE_CLIENT_HELD_MAX: Final = 1_000
"""Messages that one `Queue` extends in the background: a hundred requests of ten within the shortest time there is between two, a second or so."""

QUEUE_CLIENT_VISIBILITY_KNOWN_MS: Final = 60_000
"""How long a client believes what a queue's visibility timeout is: a change of it counts a minute later at most."""

QUEUE_CLIENT_BATCH_MAX: Final = 10
"""Messages in one request of the SQS API."""

QUEUE_CLIENT_BATCH_BYTES_MAX: Final = 1 << 20
"""Bodies and attributes in one request of the SQS API."""

# Between nodes

CLUSTER_SECRET_CHARACTERS_MIN: Final = 16
"""A stranger that connects gets a proof to try secrets against; so many random characters cannot be tried."""

PEER_NONCE_BYTES: Final = 32
"""What each end adds to a proof. Two are never the same, and the proof itself is no longer."""

PEER_GREETING_BYTES_MAX: Final = 1 << 12
"""A request on the internal listener from a stranger that has not proved yet to be a node. Names, a nonce, a proof."""

PEER_CONNECTIONS_MAX: Final = 20_000
"""Connections of the internal listener. A broker has a handful to each other; a front end that passes requests on has one for each
of its clients."""

PROXY_ANSWER_MS_MAX: Final = 60_000
"""How much longer than a client allows an answer of the node behind may take before that node is given up. Clients give up sooner."""

PEER_BUFFER_BYTES_MAX: Final = 1 << 28
"""As `NODE_BUFFER_BYTES_MAX`, for what nodes ask each other: clients that spend theirs must not keep heartbeats from being read."""

PEER_ENVELOPE_BYTES: Final = 1 << 16
"""What a forwarded request is longer than the client's own: its names, twice as long as any may be."""

PEER_CONNECT_MS_MAX: Final = 2_000
"""To connect to another node, and to prove each other's right. A node that takes longer is as good as gone."""

PEER_PLAIN_REMEMBERED_MS: Final = 60_000
"""How long a node that spoke no TLS is called in the clear at once, where that is allowed. It may be another version by then."""

PEERS_PLAIN_REMEMBERED_MAX: Final = 1_000
"""As many as there are nodes; beyond that it is all found out again."""

PEER_RENEWED_MS: Final = 5_000
"""How often connections to other nodes are looked at for a secret or a channel that is on its way out, and how long one that was renewed is kept
for what is under way. Some heartbeats go by meanwhile, so that its end means nothing."""

PEER_FORMER_MS_MAX: Final = 60_000
"""For what a connection that was renewed still owes. Long polls of nodes take half of it."""

PEER_PLAIN_KEPT_MS: Final = 60_000
"""How long a connection without TLS lives on when TLS is asked for: others renew theirs meanwhile."""

PEER_RECONNECT_MS_MIN: Final = 50
"""After a connection to another node could not be made; twice as long after each further failure."""

PEER_RECONNECT_MS_MAX: Final = 1_000
"""A node that comes back is noticed within this, and one that does not costs a packet or two in a second."""

ERRANDS_MAX: Final = 10_000
"""What clients and nodes may wait for at other nodes at once. Each is a task of a few kilobytes."""

FORWARD_MS_MAX: Final = 20_000
"""How long a client's change may take at the controller before the node that forwarded it answers. Clients wait thirty seconds."""

METADATA_WAIT_MS_MAX: Final = 30_000
"""The longest that a node may be kept waiting for news of the metadata; it asks again at once."""

PEER_COMPLAINT_MS: Final = 60_000
"""How often the same complaint about another node is repeated in the log. It tries again every second."""

PEER_COMPLAINTS_MAX: Final = 1_000
"""Different complaints that are remembered as made: their texts name nodes and addresses, which are others' choice."""

CONTROLLER_ASK_MS_MAX: Final = 1_000
"""How long one round of asking all nodes who the controller is may take; a node that is alive answers in a few milliseconds."""

CONTROLLER_RETRY_MS_MIN: Final = 50
"""Before the controller is looked for again; twice as long after each further failure."""

CONTROLLER_RETRY_MS_MAX: Final = 500
"""A new controller is found within this."""

CONTROLLER_NODES_ASKED_MAX: Final = 32
"""Nodes that are asked at once who the controller is. In a large cluster some of any thirty are alive."""

# Producers and transactions in a partition

REFUSED_FIRST_MS_MAX: Final = 5 * 60 * 1000
"""How long the first batch of a producer is waited for after it was refused. Clients give a batch up after two minutes."""

REFUSED_FIRSTS_PER_CONNECTION_MAX: Final = 1_000
"""Partitions to which a connection may owe the first batch of a producer that was refused. A client has few requests in flight; a front
end carries those of many clients on one connection."""

PLACES_PER_OWNER_MAX: Final = 8
"""Whole snapshots of an owner's state that a log tells apart. Above the high watermark there is seldom more than one; those between the first
and the last few only hold the log up for longer when they are forgotten."""

PRODUCERS_PER_PARTITION_MAX: Final = 16_384
"""Idempotent producers a partition remembers, about 500 bytes each; beyond it the longest silent are forgotten."""

UNSETTLED_TRANSACTIONS_MAX: Final = 8_192
"""Ended transactions of a partition above its high watermark that are told apart; the earlier half beyond it in pairs. Only
a partition whose followers have fallen far behind, or one that is read from its beginning at a start, has so many."""

ABORTED_CHUNK_COUNT: Final = 4_096
"""Aborted transactions that leave memory together for a file of some 80 KB, which is read whole in less than a millisecond."""

HANGING_SLACK_MS: Final = 5 * 60 * 1000
"""How long after the longest time that a transaction may take it counts as hanging: Kafka's measure. A coordinator that has
just failed over needs some of it."""

VERIFICATIONS_PER_PARTITION_MAX: Final = 4_096
"""Producers of a partition that may be waiting for permission to begin a transaction there. The earliest lose their turn."""

# Turns of the loop, over partitions and records

PARTITIONS_OPENED_TOGETHER: Final = 256
"""Partitions made and opened by one trip to the disk pool: few enough that a start fills all of its threads, many
enough that the syncs of a burst of new topics do not count."""

PARTITIONS_FROZEN_MIN: Final = 500
"""Partitions opened together that the garbage collector is kept off, as it is kept off what a node has opened by its start. Fewer do
not make a collection longer by more than some milliseconds."""

COLLECT_YOUNG_AFTER: Final = 5_000
"""New objects after which the garbage collector looks at the youngest: well below a millisecond."""

COLLECT_OLDER_AFTER: Final = 10
"""Looks at one generation of objects after which the one above is looked at, too. Some 15 objects are made for a partition that gets
another leader, so that tens of thousands do so between two looks at all there is, of a tenth of a second each; and half a million objects
that nobody needs any more take up some 60 MiB."""

ROLES_PER_TURN: Final = 64
"""Partitions that are given another role, or told of a change, before others have their turn of the event loop: some milliseconds,
most of them to make the state of a leader."""

RECORDS_PER_TURN: Final = 2048
"""Records of the metadata that are looked at in one turn: about a millisecond."""

REPLICAS_NAMED_MAX: Final = 128
"""Partitions that a follower names anew in one fetch, some milliseconds for either side. After an election there are thousands: the
next fetch names the rest."""

ELECTIONS_PER_TURN: Final = 128
"""Partitions about which the controller decides before others have their turn of the event loop. One that gets another leader takes some
forty calls: where all of them do, as at the end of a broker's maintenance, a turn is a few milliseconds."""

PARTITIONS_PER_TURN: Final = 256
"""Partitions that housekeeping looks at before others have their turn of the event loop: well below a millisecond."""

SNAPSHOTS_TOGETHER_BYTES_MAX: Final = 1 << 24
"""Closing snapshots held in memory to be written with one sync. Those of 6,000 quiet partitions take less than 1 MiB."""

INDEX_CACHE_BYTES_MAX: Final = 1 << 26
"""Indexes of closed segments held in memory by all partitions together: those of some 16 GiB being re-read."""

TAIL_BATCHES_MAX: Final = 128
"""Latest batches of a partition whose positions are kept exactly, 2 KiB. Consumers at the tail are seldom further back."""

SNAPSHOTS_KEPT: Final = 3
"""Snapshots of producer state per partition. One below the recovery point is enough; the others may turn out damaged."""

VERIFY_INLINE_BYTES_MAX: Final = 1 << 16
"""Bytes whose CRCs are computed on the event loop; 64 KiB of the smallest batches take about a millisecond."""

# The command line

CLIENT_LINE_BYTES_MAX: Final = 1 << 27
"""The longest message the command line gathers from its input: more than any broker takes in one request."""

TOP_ROWS_MAX: Final = 500
"""Rows that `ropewalk top` draws. Nobody scrolls further, and a terminal with thousands takes seconds to draw."""

BENCH_RECORD_BYTES_MAX: Final = 1_000_000
"""The largest record `ropewalk bench` sends: what every broker takes unless it was told otherwise."""

BENCH_BATCH_RECORDS_MAX: Final = 10_000
"""Records that one sender of `ropewalk bench` holds at a time: with headers and all some megabytes."""

BENCH_SENDERS_MAX: Final = 256
"""Senders of `ropewalk bench` at once. Beyond some dozens they only wait for each other's turn on one core."""

# Verifying

SCRUB_BYTES_PER_TICK: Final = 1 << 23
"""Closed segments verified in one go: a disk read of some 10 ms that others hardly notice."""

SCRUB_DELAY_MS: Final = 60 * 1000
"""From the start of a node to its first round of verifying: start-up has the disk to itself."""

SCRUB_REST_MS: Final = 24 * 60 * 60 * 1000
"""Between two rounds of verifying everything. Bit rot is slow, and reads verify what they serve anyway."""

# Rights

ACL_RULES_MAX: Final = 100_000
"""Rules about who may do what. Each takes about a kilobyte, in every node's memory and in every snapshot of the metadata."""

ACL_ITEMS_PER_REQUEST_MAX: Final = 10_000
"""Rules that one request adds, or that its filters remove: they are one change of the cluster. The figure of Kafka."""

ACL_FILTERS_PER_REQUEST_MAX: Final = 1_000
"""Filters of one DeleteAcls, each of which is held against all rules."""

ACL_NAME_CHARACTERS_MAX: Final = 1_024
"""Of what a rule is about, and of whom. A group's id may have 32,767, and a hundred thousand of those would be remembered."""

ACL_RULES_PER_TURN: Final = 1_000
"""Rules that one turn of the loop holds against a filter: about half a millisecond."""

ACL_ANSWERS_MAX: Final = 50_000
"""Decisions that are remembered, some 300 bytes each."""

ACL_ANSWERED_NAME_CHARACTERS_MAX: Final = 255
"""Of the name in a decision that is remembered: a topic has 249. Longer ones are decided anew each time."""

# Quotas

USERS_MAX: Final = 10_000
"""Users with credentials, some 250 bytes each. All of them are in every node's memory and in every snapshot of the metadata."""

USERS_CHANGED_MAX: Final = 1_000
"""Credentials that one request sets or removes. They are decided at once, and one takes some ten microseconds."""

USER_NAME_BYTES_MAX: Final = 255
"""Of a user's name. It stands in rules, quotas, log lines and every forwarded request."""

CLIENT_QUOTAS_MAX: Final = 10_000
"""Entities that have quotas. All of them are in every node's memory and in every snapshot of the metadata."""

QUOTA_NAME_CHARACTERS_MAX: Final = 1_024
"""Of a user or client id that a quota is for. A client id may have 32,767, and thousands of those would be remembered;
a client that has a longer one shares with all whose ids begin alike."""

QUOTA_SHARES_MAX: Final = 16_384
"""Clients whose use of a quota is remembered, some 200 bytes each; beyond it the longest silent are forgotten, and begin
again with an unused quota. Client ids are the clients' own choice, so there may be any number."""

THROTTLE_MS_MAX: Final = 30_000
"""The longest that a client is kept waiting for having exceeded a quota. Clients give up on an answer after that, so one
batch far above a tiny quota costs this and no more."""

# Clocks, damage and sessions

CLOCK_SKEW_MS_MAX: Final = 5 * 60 * 1000
"""How far the clock of a node that joins may be off. Beyond it records would expire early or late on another leader; networks
that keep time at all keep it a thousand times better."""

CLOCK_STEP_MS_MAX: Final = 60 * 1000
"""A step of the wall clock that is followed without a question. Time servers step by seconds; a record kept or deleted a minute early
or late does no harm."""

CLOCK_DOUBTED_MS: Final = 60 * 60 * 1000
"""How long a wall clock that has jumped must stay there to be believed. Long enough for somebody who is warned to set it right before
retention deletes by it; short enough that a disk does not run full meanwhile."""

DAMAGE_CHECK_MS: Final = 5_000
"""How often it is looked whether a read or the scrub has found a copy damaged that others can do without."""

REPAIR_INTERVAL_MS_MIN: Final = 60_000
"""How often a node gives damaged copies up at most: each time it is out of service for a moment."""

CONNECTION_GRACE_MS: Final = 500
"""From the loss of the connection that a broker's heartbeats came by until it is fenced. A connection that broke by itself is
back by then; a killed process is not, and waiting longer only delays the next leader."""

TAKE_OVER_GRACE_MS: Final = 2_000
"""From the moment at which a controller takes over until brokers are fenced that it has not heard yet. Those that live find it
within some hundred milliseconds; one that died with the former controller, or before it was heard by this one, has no
connection whose end would tell."""

# Upkeep of the cluster

DRAIN_MOVES_MAX: Final = 20
"""Partitions that are moved off a broker at a time. Each is copied whole, and clients are served meanwhile."""

LEAVER_FORGOTTEN_MS: Final = 60_000
"""How long a broker that was to leave and holds nothing must have been gone before it is forgotten unasked. One that only
hung for less than this is still known to be leaving when it is back."""

LOAD_MEASURED_MS: Final = 5_000
"""How often a node measures what it carries. A look at a partition takes a microsecond."""

LOAD_SLICE_COUNT: Final = 200
"""Partitions that are measured in one turn of the loop, which takes less than a millisecond."""

LOAD_PARTITIONS_TOLD_MAX: Final = 2_000
"""Partitions whose traffic one heartbeat tells of, the busiest, some 50 bytes each."""

UPKEEP_MS: Final = 2_000
"""How often the controller looks whether there is anything to do for the cluster: a walk over all partitions, some milliseconds
with ten thousand."""

UPKEEP_CHANGES_MAX: Final = 50
"""Partitions that one round of upkeep moves or gives another leader. Thousands at once would all be copied, or looked for by
clients, at the same time."""

SCALE_NEWS_MS_MIN: Final = 60_000
"""Between two tellings that another node is wanted, or no longer. The webhook starts a machine, which takes as long."""

SCALE_NEWS_RETRY_MS: Final = 1_000
"""Before a webhook that could not be told is tried again; twice as long each time, up to a minute."""

SCALE_NEWS_ATTEMPTS_MAX: Final = 20
"""To tell the same. After a quarter of an hour nobody is there to hear it; the metric still says so."""

SCALE_NEWS_ANSWER_MS_MAX: Final = 10_000
"""For connecting and being answered, when somebody is told that another node is wanted."""

SCALE_NEWS_ANSWER_BYTES_MAX: Final = 1 << 16
"""Of that answer, of which only the status counts."""

ALERT_ROUND_MS: Final = 2_000
"""Between two looks of a node at its own figures. Faults are to be told within 15 seconds, of which waiting may take five."""

ALERT_WALK_ROUNDS: Final = 5
"""Every so many rounds the figures are looked at that take a walk over partitions, groups and queues: as often as Prometheus would."""

ALERT_REMEMBER_MS: Final = 15_000
"""Between two samples that are kept for rates and forecasts: six hours of them are 1,440 for each series, 35 KB."""

ALERT_SERIES_REMEMBERED_MAX: Final = 200
"""Series of which samples are kept. The rules need some 40; beyond it windows would cost more than 7 MB."""

ALERTS_MAX: Final = 1_000
"""Alerts of one node that are kept at a time. A fault that hits every group fills it, and more of the same helps nobody."""

ALERTS_TOLD_MAX: Final = 200
"""Alerts in one answer to a client, firing ones first."""

ALERT_NOTICES_MAX: Final = 500
"""Notices that wait for the webhook. Beyond it the oldest is dropped, and counted."""

ALERT_NOTICE_ATTEMPTS_MAX: Final = 8
"""To deliver one notice, over some ten minutes: after that it is no news any more, and `ropewalk alerts` still says so."""

ALERT_NOTICE_RETRY_MS: Final = 5_000
"""Before a notice is sent again; twice as long each time."""

ALERT_NOTICE_RETRY_MS_MAX: Final = 300_000
"""The longest wait between two attempts, whatever the webhook asks for."""

SILENCES_MAX: Final = 100
"""Silences at a time; each is looked at for each alert."""

SILENCE_MS_MAX: Final = 30 * 24 * 60 * 60 * 1000
"""The longest silence. What is to be silent for ever is a rule that nobody needs."""

LAG_AGE_ROUND_MS: Final = 10_000
"""Between two rounds in which the age of what groups would read next is looked up."""

LAG_AGE_LOOKUPS_MAX: Final = 64
"""Look-ups of one round. Each reads one batch, most of them from the page cache; 64 MiB in ten seconds if all are large and cold."""

BALANCE_CHANGES_MAX: Final = 200
"""Partitions in one plan to even out the load, which takes some tenth of a second to work out. What is left is for the next."""

# What is remembered

LOSSES_REMEMBERED_MAX: Final = 200
"""Elections that may have lost records, of which the metadata tells. An operator has read the older ones, or never will."""

AUDIT_CHANGES_KEPT_MAX: Final = 1000
"""Changes of which the metadata tell who asked for them, until the audit topic has them and for a while after. An outage of that topic
of hours, where a person makes changes; of seconds, where a program makes them without end."""

AUDIT_CHANGES_BYTES_MAX: Final = 1 << 20
"""What these may take together, about: every snapshot of the metadata has them."""

AUDIT_DETAILS_MAX: Final = 20
"""Things that one change has made different and that are told one by one; the others are counted."""

AUDIT_RECORDS_READ_MAX: Final = 1000
"""Facts of one change that are looked at for that: a thousand take a millisecond of the loop."""

AUDIT_TEXT_MAX: Final = 200
"""Characters of a name or a value that are told."""

AUDIT_GROUPS_MAX: Final = 20
"""Groups of a principal that are told."""

REIGNS_REMEMBERED_MAX: Final = 500
"""Controllers of which the metadata tells where they began. A node that was away for longer cannot be told that it has followed
another history; one that takes over every hour, for three weeks."""

REIGN_BYTES: Final = 12
"""Of the random name of a reign: never the same twice."""

PROCESS_BYTES: Final = 8
"""Of what a process draws to be told from others that have used its data directory: two in a row must not draw the same."""

TOPICS_DELETED_REMEMBERED_MAX: Final = 10_000
"""Deleted topics whose ids are kept, so that a node that was away removes their records, and only theirs. What
it holds of older ones is left alone."""

QUEUES_DELETED_REMEMBERED_MAX: Final = 1_000
"""Names of deleted queues that are kept, so that they can rest. Whoever deletes more in a minute may make one anew at once."""

MOVE_TASK_ID_BYTES: Final = 16
"""Random ones, so that no two tasks have one id and nobody guesses another's."""

MOVE_TASKS_REMEMBERED_MAX: Final = 10
"""Move tasks of a dead-letter queue that are kept, the latest. SQS lists as many."""

# Compaction

COMPACTION_BYTES_PER_TICK: Final = 1 << 23
"""What compaction reads and writes in a second, with `COMPACTION_RECORD_BYTES` for every record it opens. It takes some
tenth of a core while it runs."""

COMPACTION_RECORD_BYTES: Final = 128
"""What opening a record costs, in bytes that could be copied in the same time: a few microseconds."""

COMPACTION_KEYS_MAX: Final = 1 << 19
"""Keys that one pass of compaction remembers, some 100 MB at the most. More keys take more passes."""

COMPACTION_MERGED_SEGMENTS_MAX: Final = 64
"""Small segments that one pass makes into one; their files are open until it is in place."""

# Shards, groups and patterns

SHARD_REPLAY_BYTES: Final = 1 << 19
"""What is read of a shard's log in one go, in the disk pool: enough that the way there and back does not count."""

SHARD_REPLAY_EVENTS: Final = 2048
"""Applied in one turn of the loop, which is a millisecond or two."""

SHARD_REPLAY_KEYS_MAX: Final = 1 << 20
"""Keys of which the last record is kept while a shard's log is read, before they are applied: at most as much memory again
as their state takes, some 250 bytes each. Where there are more, some events are applied that later ones replace."""

SHARD_BATCH_BYTES: Final = 1 << 20
"""Events of one turn of the loop that share a batch; a single larger event has a batch of its own."""

SHARD_REST_MS: Final = 1000
"""Between an append that failed, or a log that could not be read, and the next attempt: a full disk stays full for a while."""

GROUP_NAME_CHARACTERS_MAX: Final = 8191
"""Group, instance and protocol names. Records about groups have 16-bit lengths, and a character takes up to four bytes."""

GROUP_METADATA_BYTES_MAX: Final = 1 << 25
"""What the members of one group say of themselves, all together. It goes into one record, with assignments of up to a
request's size, and a record must fit a segment (100 MiB by default). A thousand members have 32 KiB each."""

GROUP_PENDING_MEMBERS_MAX: Final = 10_000
"""Member ids of one group that were given out and not used yet; each costs some 300 bytes for a session timeout."""

GROUP_PATTERN_BYTES_MAX: Final = 1 << 20
"""What RE2 may use for one regular expression of a client. Its default is 8 MiB; a subscription takes some kilobytes."""

GROUP_PATTERNS_COMPILED_MAX: Final = 256
"""Regular expressions that are kept compiled, each within the bound above; to compile one takes some 20 µs."""

GROUP_ALARMS_PER_TICK_MAX: Final = 1000
"""Sessions, rebalances and expiry checks that one tick carries out, some 10 ms of them; the rest are due at once again."""

TRANSACTION_ALARMS_PER_TICK_MAX: Final = 1000
"""Transactions aborted and transactional ids forgotten by one tick, some 10 ms of them; the rest are due at once again."""

TRANSACTIONAL_ID_BYTES_MAX: Final = 2**15 - 1
"""The key of a record about it counts its length in a signed number of two bytes."""

PATTERN_CHARACTERS_MAX: Final = 10_000
"""Of a regular expression that a client sends: ten times what a list of a hundred names needs."""

PATTERN_BYTES_MAX: Final = 1 << 20
"""Memory that one compiled expression may take. RE2 refuses what needs more, and a client can send many."""

# Queues

QUEUE_IN_FLIGHT_MAX: Final = 120_000
"""Messages of a queue that are received and neither deleted nor visible again, over all of its partitions. The figure of SQS."""

QUEUE_IN_FLIGHT_LOOK_MS: Final = 500
"""How often the leader of a partition that has more than its share of them in flight asks the others how many they have. In so long one gives out some thousands."""

QUEUE_WINDOW_MESSAGES_MAX: Final = 120_000
"""Unsettled messages whose groups are known, from the first on. Those behind them wait: SQS looks no further either."""

QUEUE_DELAYED_MAX: Final = 1_000_000
"""Messages of a partition that wait for their own delay. Beyond it the rest of the log is not read."""

QUEUE_WAITING_RECEIVES_MAX: Final = 10_000
"""Receives that wait for a message of one partition; more are told to come back."""

QUEUE_RECEIVE_MESSAGES_MAX: Final = 1_000
"""Messages of one receive. SQS has 10; pollers of our own may ask for more, within what a turn of the loop can carry."""

QUEUE_DELAY_MS_MAX: Final = 15 * 60_000
"""How long a message may be delayed. The figure of SQS; what lies longer in the log is delayed no more, so nobody has to know when it was sent."""

QUEUE_MARK_MS: Final = 250
"""Of ends of the log within so much time one is kept. A delay ends late by as much, and 15 minutes of it are 3,600 numbers."""

QUEUE_GATHER_MS: Final = 20
"""How long a receive that could be given something waits for the log to be read, if it wants more. A cached log is read in a tenth of it,
and a cold disk must not keep what is there from whoever wants it."""

QUEUE_VISIBILITY_MS_MAX: Final = 12 * 3_600_000
"""How long one attempt may hide a message, with every extension: SQS promises that bound, and a lost receiver costs no more."""

QUEUE_ACQUIRE_WRITE_MS_MAX: Final = 100
"""How long what a standard queue gave out may be in memory alone: so much may be given out again after a change of leader."""

QUEUE_TIME_WRITE_MS: Final = 10_000
"""While something is hidden, the time is written at least so often. A deadline comes late by as much after a change of leader."""

QUEUE_DEDUPLICATION_MS: Final = 5 * 60_000
"""How long a message's deduplication id, and the id of a receive, are remembered. The figure of SQS."""

QUEUE_DEDUPLICATION_REST_MS: Final = 60_000
"""How long ids that have run out may stay where nobody sends any more: a million of them take a quarter of a gigabyte."""

QUEUE_DEDUPLICATION_IDS_MAX: Final = 1_000_000
"""Deduplication ids that a partition remembers: five minutes of 3,000 messages a second are 900,000.
Beyond it sends are refused, since to forget one would let a duplicate in."""

QUEUE_RECEIVE_IDS_MAX: Final = 20_000
"""Ids of receives that a partition of a FIFO queue remembers, the latest."""

QUEUE_MOVE_MESSAGES_MAX: Final = 500
"""Dead letters that move together: one intent, one batch in the target, one end."""

QUEUE_MOVE_TARGETS_MAX: Final = 1_000
"""Partitions to which one producer id of a queue's partition moves messages: their sequences are in every snapshot. For more another id is taken."""

QUEUE_MOVE_WAIT_MS: Final = 100
"""How long a receive that would be answered empty waits for dead letters that are on their way."""

QUEUE_READ_WAIT_MS: Final = 1_000
"""How long a receive waits for the log to be read, besides what it is willing to wait for a message. A cold disk takes a tenth of it."""

QUEUE_ALARMS_PER_TICK_MAX: Final = 5_000
"""Ends of visibility, delays and polls that one tick carries out, some 10 ms of them; the rest are due at once again."""

QUEUE_SNAPSHOT_PIECE_BYTES: Final = 1 << 20
"""A snapshot is written in pieces of at most so much, as other batches are, so that no follower's fetch is held up by one."""

QUEUE_SNAPSHOT_BYTES_MAX: Final = 1 << 28
"""A snapshot that is read, all pieces together."""

QUEUE_TOPIC_BATCH_BYTES_MAX: Final = (1 << 20) + (1 << 16)
"""`max.message.bytes` of topics that are made for queues: a message of 1 MiB, and its headers, of which ours take less than 4 KiB."""

QUEUE_PARTITIONS_AUTO_MAX: Final = 8
"""`partitions.auto.max` of topics that are made for standard queues: growth harms nobody where there is no order to keep."""

QUEUE_ATTRIBUTES_BYTES_MAX: Final = 1 << 16
"""Names and values of a queue's attributes, or of its tags, together. Every node keeps them, and a policy of Amazon's has at most 20 KiB."""

QUEUE_TAGS_MAX: Final = 50
"""The figure of SQS."""

QUEUE_RECEIVE_COUNT_MAX: Final = 1_000
"""How often at most a message is received before it is a dead letter. The figure of SQS."""

QUEUE_MOVES_PER_SECOND_MAX: Final = 500
"""Messages that a move task moves in a second, if somebody limits it. The figure of SQS."""

QUEUE_ALLOWED_SOURCES_MAX: Final = 10
"""Queues that a dead-letter queue names as the only ones it takes from. The figure of SQS."""

QUEUE_NOISY_IN_FLIGHT_MIN: Final = 30
"""Of a standard queue's groups, one with fewer messages in flight is never put behind others. The figure of SQS."""

QUEUE_BATCH_BYTES: Final = 1 << 20
"""Messages of one turn that share a record batch; a single larger message has a batch of its own."""

QUEUE_BATCH_RECORDS_MAX: Final = 8_000
"""The same as a number: so many small ones are packed in some 10 ms."""

QUEUE_SENDS_PER_TURN_BYTES_MAX: Final = 1 << 26
"""Messages that wait for the end of the turn of the loop in one partition; who comes with more is told to come back."""

QUEUE_READ_BYTES: Final = 1 << 18
"""What is read of a queue's log in one go when receivers need more: some hundreds of messages, opened in some milliseconds."""

QUEUE_REREAD_BYTES: Final = 1 << 15
"""What is read in one go for messages that are given out and not at hand: they may lie far apart."""

QUEUE_TOLD_TOGETHER: Final = 1_000
"""Messages that a queue's core is told of in one go, if so many are at hand: a millisecond or two. One stretch of the log may have more."""

QUEUE_READS_PER_TURN_MAX: Final = 4
"""Stretches that are told to a queue's core before others have a turn."""

QUEUE_READ_AHEAD_BYTES_MAX: Final = 1 << 20
"""Records that a partition of a queue keeps at hand: those just written, and those to be given out next. Others are read again."""

QUEUE_READ_AHEAD_NODE_BYTES_MAX: Final = 1 << 26
"""The same for all partitions of a node together: at most so many queues are busy at a time, and idle ones hold nothing."""

QUEUE_LOAD_BYTES: Final = 1 << 22
"""What is read of a queue's log in one go while its state is loaded, in the disk pool."""

QUEUE_LOADS_TOGETHER: Final = 4
"""Queues whose state is loaded side by side: as many as the disk pool has threads to spare."""

QUEUE_SNAPSHOT_LOG_BYTES: Final = 1 << 26
"""A snapshot is written when the log has grown by so much since the last, or by eight times the snapshot if that is more:
so much is read when somebody else comes to lead, a tenth of a second of it."""

QUEUE_SNAPSHOT_LOG_FACTOR: Final = 8
"""See above: snapshots take no more than an eighth of what is written."""

QUEUE_SNAPSHOT_DELTA_BYTES: Final = 1 << 18
"""A snapshot is written, too, when the deltas since the last have so much, or a sixteenth of it if that is more: some 2,000 requests, which take
a quarter of a second to read again, forty times as long as as many bytes of a snapshot."""

QUEUE_SNAPSHOT_DELTA_SHARE: Final = 16
"""See above: deltas are read in about three times the time of their snapshot at most, and snapshots are written no more often than that needs."""

QUEUE_UPKEEP_MS: Final = 2_000
"""How often logs of queues are shortened to what is not deleted, and snapshots written that somebody waits for."""

QUEUE_EXPIRY_LOOK_MS_MAX: Final = 3_600_000
"""How long a queue's log is not asked which messages have expired, whatever the stamp that was found: Kafka's producers make up their own."""

QUEUE_WRITE_DOWN_MS_MAX: Final = 3_000
"""How long a node that stops waits for its followers to have what its queues had only in memory."""

QUEUE_ERASED_TOGETHER_MAX: Final = 64
"""Logs of queues that are shortened side by side: their starts are made durable by one write."""

QUEUE_PURGE_REST_MS: Final = 60_000
"""Between two purges of a queue. The figure of SQS."""

QUEUE_REST_MS: Final = 1_000
"""Between a queue's append that failed, or a log that could not be read, and the next attempt: a full disk stays full for a while."""

QUEUE_TASK_LOOK_MS: Final = 500
"""How long a move task waits before it looks again: at messages that others have just received, at the shares of other partitions, at whether it is cancelled."""

QUEUE_TASK_STEPS_PER_SECOND: Final = 5
"""In so many steps a move task moves what its rate allows for a second. Each step is three commits."""

QUEUE_MOVE_REST_MS: Final = 1_000
"""Between a move of dead letters that nobody took and the next attempt: its target may be without a leader for so long."""

QUEUE_MOVE_TELL_MS: Final = 600_000
"""How often the log says that nobody can tell any more whether a move has ended: a person has to look."""

QUEUE_PEEK_BYTES_MAX: Final = 1 << 22
"""What is read of a log to show the first messages of a queue, whatever lies between them, and what is shown, but for the last message."""

QUEUE_CREDITS_PER_SESSION_MAX: Final = 20_000
"""Receives that one front end may have left with one leader: twice what waits at a busy queue."""

QUEUE_SESSIONS_MAX: Final = 1_000
"""Front ends that receive from one leader. Each has one session, and another one after a break."""

QUEUE_SESSION_SILENCE_MS_MAX: Final = 20_000
"""After so long without a poll a front end is taken for gone, and what it was given and had not taken is given to others."""

QUEUE_DELIVERIES_BYTES_MAX: Final = 4 << 20
"""Of messages in one answer to a front end, unless one receive's alone are more."""

QUEUE_POLL_MS: Final = 8_000
"""How long a leader holds the poll of a front end for which it has nothing: less than half of the silence it is allowed."""

QUEUE_CALL_MS_MAX: Final = 10_000
"""How long a front end waits for a leader's answer about messages: twice what a commit may take, and a fraction of what SDKs wait for an answer
before they ask again."""

QUEUE_SHIPMENT_MESSAGES_MAX: Final = 32
"""Dead letters that are read and brought to their target at once: 32 MiB of the largest."""

QUEUE_FAR_RECEIVE_MS_MAX: Final = 3_000
"""How much longer than it is willing to wait a receive waits for a leader on another node: reading, the way there and back, and a busy machine."""

QUEUE_LOOK_AGAIN_MS: Final = 500
"""How long a receive that meets a queue without a leader waits before it looks again, if nothing tells it sooner."""

QUEUE_CREDITS_TOGETHER_MAX: Final = 1_000
"""Receives that are left with a leader by one request."""

# Figures and health

SCRAPE_SLICE_COUNT: Final = 100
"""Rows of figures written between two turns of the event loop, at some 5 µs each."""

HEALTH_SLICE_COUNT: Final = 500
"""Partitions looked at between two turns of the event loop when the cluster's health is asked for, at some 1 µs each."""

HEALTH_CHECK_MS: Final = 1_000
"""How often a node looks at its own health to tell the controller, and whether it still hears of the cluster."""

HEALTH_FRESH_MS: Final = 1_000
"""A client that asks for the cluster's health again within this time gets the same answer: the walk over all partitions is made once."""

HEALTH_ASK_MS_MAX: Final = 2_000
"""How long a node waits for the controller's account of the cluster's health. Who asks by HTTP mostly waits five seconds or ten."""

NODE_BEHIND_MS_MAX: Final = 5_000
"""How long a node may lack records of the metadata before it is said to be behind. To follow a large change takes a second or two."""

CLOCK_DIFFERENCE_MS_MAX: Final = 5_000
"""By how much a node's clock may differ from the controller's before people are told. Heartbeats take milliseconds, and clocks that are
kept right differ by less; five minutes are refused at registration."""

COMPLAINTS_MAX: Final = 16
"""What a node says is wrong with itself in one heartbeat. There are fewer checks than that."""

TROUBLES_TOLD_MAX: Final = 1_000
"""Troubles in one account of the cluster's health, the worst of them. Nobody reads more, and a page of them is 100 KB."""

TROUBLES_NAMED_MAX: Final = 10
"""Partitions of a topic that are named where many have the same trouble."""

# Room on the disk

RESERVE_PARTITION_BYTES: Final = 1 << 10
"""Room kept back on the disk for each partition, besides `node.reserve.bytes`: three checkpoints, each written beside the one that
it replaces, at some 160 bytes a time."""

RESERVE_SHARE_MAX: Final = 32
"""Of a small file system the reserve takes at most one part in so many: what is left is for records."""

RESERVE_SLICES: Final = 16
"""The reserve is given up in so many slices. Other processes that write to the disk may take what is freed, so it is freed bit by bit."""

RESERVE_PIECE_BYTES: Final = 1 << 16
"""Written at a time while the reserve is made: some tens of microseconds, for which nobody else can give a slice up."""

ROOM_LOOK_MS: Final = 1000
"""How often a node looks whether there is room. Clients that were refused ask again about as often."""

RETENTION_WHEN_FULL_MS: Final = 5000
"""How often retention looks for what has expired while the disk is full, if it would look less often: nobody can write meanwhile."""

DISK_FREE_BYTES_MIN: Final = 1 << 26
"""Room below which a node does not call itself ready: a few segments' indexes, a snapshot and some seconds of writes."""

# HTTP

HTTP_CONNECTIONS_MAX: Final = 256
"""Connections of the HTTP door: monitoring, probes and people, not traffic."""

HTTP_URL_BYTES_MAX: Final = 1 << 13
"""The longest address that is read. Common servers and browsers stop there too."""

HTTP_HEAD_BYTES_MAX: Final = 1 << 14
"""A request's head. Cookies of other services on the same host name arrive here as well."""

HTTP_HEADERS_MAX: Final = 128
"""Headers of a request. Each becomes an object of a hundred bytes or more, however short it is."""

HTTP_LINES_KEPT_MAX: Final = 1_024
"""Lines of heads whose meaning is remembered, over all connections: some ten for each sort of client, and one for each second's date."""

HTTP_LINE_KEPT_BYTES_MAX: Final = 128
"""No longer one is remembered: long ones, as signatures, are different each time."""

HTTP_BODY_BYTES_MAX: Final = 1 << 16
"""A request's body at the HTTP door, where nothing that is served takes one."""

HTTP_CHUNK_OVERHEAD_FACTOR: Final = 8
"""How many times the largest body a request may have on the wire. A body in chunks of a byte each has six times as much."""

HTTP_REQUESTS_PER_TURN: Final = 16
"""Requests of one connection that are handled before the loop goes round, if they are answered at once."""

HTTP_REQUEST_MS_MAX: Final = 10_000
"""From the first byte of a request to the end of its head. Slower than that is no client but an attack or a broken line."""

HTTP_CROWDED_REQUEST_MS_MAX: Final = 2_000
"""The same while a door has as many connections as it may: whoever comes is served rather than those who do not get to the end of a line."""

HTTP_MAKE_ROOM_MS: Final = 100
"""How often a door that is full looks at all its connections for such: a look at ten thousand takes a millisecond or two."""

HTTP_BODY_BYTES_PER_S_MIN: Final = 1 << 14
"""What must come of a body in each second beyond that: a mebibyte has a minute more."""

HTTP_STREAM_BYTES_PER_TURN: Final = 1 << 18
"""Of an answer that is made as it is sent, before others have a turn. Mostly the transport has enough sooner."""

HTTP_LINGER_MS_MAX: Final = 2_000
"""How long one that was refused may go on sending before the connection is closed. Closed at once, it would be reset, and the
client would not read why it was refused."""

HTTP_LINGER_BYTES_MAX: Final = 1 << 22
"""How much of that is read, and dropped."""

HTTP_ANSWER_MS_MAX: Final = 30_000
"""How long a client may take nothing of an answer, which is held in memory meanwhile."""

HTTP_IDLE_MS_MAX: Final = 120_000
"""How long a silent connection is kept. Scrapes come every minute at the slowest."""

HTTP_FORM_FIELDS_MAX: Final = 1_024
"""Fields of one form: a reset of a group names each of its partitions."""

HTTP_COMPRESSED_BYTES_MIN: Final = 1 << 10
"""What is shorter goes in one packet anyway."""

HTTP_COMPRESSED_BYTES_PER_TURN: Final = 1 << 16
"""Of an answer that is compressed before others have a turn: about a millisecond."""

EVENTS_WAITING_MAX: Final = 1_024
"""Events that wait for the reader of one stream. More would not be read by a person who is that far behind."""

EVENTS_WAITING_BYTES_MAX: Final = 1 << 18
"""And their bytes, beside one event that goes beyond."""

# Console

CONSOLE_SESSIONS_MAX: Final = 256
"""People who are logged in at one node's console. A session is a kilobyte or two; one more ends that of who has been away longest."""

CONSOLE_SESSION_IDLE_MS: Final = 30 * 60_000
"""A session that nobody has used for so long ends."""

CONSOLE_SESSION_MS_MAX: Final = 12 * 3_600_000
"""And however much it is used, after a long working day."""

CONSOLE_CLIENTS_MAX: Final = 64
"""Clients of the cluster that the console has open, one for each reader's name: each has a connection to every node."""

CONSOLE_CLIENT_IDLE_MS: Final = 120_000
"""A client that nobody has used for so long is closed."""

CONSOLE_PAGES_MAX: Final = 32
"""Pages that are being made at a time. A person waits for one; more are many people, or a program that should ask the cluster itself."""

CONSOLE_PAGE_MS_MAX: Final = 15_000
"""How long a page may wait for the cluster. What has not answered by then is said to be silent."""

CONSOLE_STREAMS_MAX: Final = 64
"""Pages that are told of changes as they come, at a time."""

CONSOLE_LOGINS_MAX: Final = 8
"""Passwords that are being checked at a time."""

CONSOLE_NOTICES_MAX: Final = 256
"""What is to be said on the next page that somebody sees. One more drops the oldest."""

CONSOLE_POINTS_MAX: Final = 300
"""Of a chart's line: ten minutes, looked at every two seconds."""

CONSOLE_LOOK_MS: Final = 2_000
"""How often the cluster is looked at while somebody watches; less often where a look takes long."""

CONSOLE_LOOK_SHARE: Final = 10
"""A look is followed by a pause of so many times what it took."""

CONSOLE_WATCHED_MS: Final = 60_000
"""How long the looks go on after the last reader has gone, so that one who comes back finds a chart and not a blank."""

CONSOLE_ROWS_MAX: Final = 100
"""Rows of one table on a page: as many as a person looks through. What is beyond is on further pages, and found by the filter."""

CONSOLE_DELAYS_MAX: Final = 32
"""Partitions of a group of which a record is read, to say for how long it is behind: those that are furthest."""

CONSOLE_MOVES_MAX: Final = 1_000
"""Partitions that a group is reset in at a time: the form names each with its target, so that what was shown is what is done."""

CONSOLE_MOVES_BYTES_MAX: Final = 48 << 10
"""And what that takes in the form, of which a body has room for little more (HTTP_BODY_BYTES_MAX)."""

CONSOLE_FETCH_BYTES: Final = 64 << 10
"""Of one partition in one answer to the console, unless a single batch is larger: a page shows a little of many."""

CONSOLE_LOOKED_AT_MAX: Final = 20_000
"""Records that are looked at for one page of messages; then the page says how far it came, and goes on from there when it is told to."""

CONSOLE_LOOKED_AT_BYTES_MAX: Final = 16 << 20
"""And bytes, as they lie in the log."""

CONSOLE_LOOKED_AT_MS_MAX: Final = 5_000
"""And time: a person waits."""

CONSOLE_VALUE_CHARACTERS_MAX: Final = 10_000
"""Of one key, value or header on a page."""

# The audit topic

AUDIT_ROUND_MS: Final = 100
"""Between two looks at whether there are changes to copy. A look costs a microsecond, and as many changes as are kept take longer to be made."""

AUDIT_AGAIN_MS: Final = 1000
"""After a copy that failed, until the next is tried."""

AUDIT_TOPIC_WAIT_MS: Final = 10_000
"""From the first change until the audit topic is made: nodes that live for less, as most do in tests, need none. It is made sooner
where so many changes come that some could be lost."""

AUDIT_APPEND_MS_MAX: Final = 30_000
"""For a batch of events to be committed. Later it is looked for in the log."""

AUDIT_BATCH_BYTES: Final = 256 << 10
"""Events that share a batch, before compression: some four hundred."""

AUDIT_WRITE_MS: Final = 1000
"""Between two writings of what is for the audit file."""

AUDIT_LINES_WAITING_MAX: Final = 10_000
"""Lines that wait for the audit file, some 6 MB; the writing of a second where ten thousand log in."""

AUDIT_DENIALS_MAX: Final = 10_000
"""Different refusals within a minute. Whoever tries more names than that is told by those that are told."""

AUDIT_DENIALS_TOGETHER_MS: Final = 60_000
"""Equal refusals within it are one line."""

AUDIT_LINE_BYTES_MAX: Final = 16 << 10
"""Of the last line of an audit file, where a node goes on."""

AUDIT_RETENTION_MS: Final = 365 * 24 * 60 * 60 * 1000
"""How long events are kept unless the topic is set to something else: most rules about audits ask for a year."""

AUDIT_SEGMENT_MS: Final = 7 * 24 * 60 * 60 * 1000
"""Retention takes whole segments: an event is kept for up to a week longer."""

# Telemetry

TELEMETRY_BATCH_COUNT: Final = 200
"""Samples that share a batch of `__telemetry`: a millisecond or two of the event loop, some 60 KiB before compression."""

TELEMETRY_SLICE_COUNT: Final = 1000
"""Partitions and groups looked at between two turns of the event loop, at half a microsecond each where nothing changed."""

# Replicas in sync

ALTERATION_RETRY_MS: Final = 100
"""From an alteration of the replicas in sync that came to nothing, or to nobody knows what, to the next of the partition."""

STRAGGLER_DROP_INTERVAL_MS: Final = 30_000
"""How often a node may be dropped as too slow to wait for. Each time costs a metadata commit, and one more for its return."""

STRAGGLER_REJOIN_MS: Final = 10_000
"""How long a node that was dropped as too slow must have kept up before it is waited for again."""

HIGH_WATERMARKS_SAVED_MS: Final = 5_000
"""How often high watermarks go to disk. After a crash a leader starts from there until its followers have told it more; Kafka's figure."""

DOUBTED_BEHIND_MS: Final = 2_000
"""How long somebody in sync stays behind a leader that no controller answers before the leader doubts that it still leads.
Longer than a busy follower takes, shorter than the patience of producers."""

IN_SYNC_TICK_MS: Final = 50
"""How often it is looked whether replicas are in sync, while anything about it may change: half of replica.straggler.ms. A look at
one partition takes some microseconds."""

ALTERATIONS_TOGETHER_MAX: Final = 2_000
"""Partitions in one request for other replicas in sync, some 100 bytes each: what a node leads when another one is lost."""

ALTERATION_MS_MAX: Final = 5_000
"""How long such a request may take before its outcome counts as unknown and it is asked again."""

# Copying

REPLICA_FETCH_MS_MAX: Final = 10_000
"""How long a fetch from a leader may take before it counts as lost; the leader holds it for half a second at most."""

REPLICA_RETRY_MS_MIN: Final = 10
"""How long a follower waits at first where it or its leader has yet to hear of the other's epoch: an election is followed everywhere within
some milliseconds. Each time it waits twice as long."""

REPLICA_RETRY_MS: Final = 100
"""How long it waits at most then, and where the leader cannot be reached."""

REPLICA_HURRY_MS_MAX: Final = 1_000
"""How long a leader has to hear that a fetch is to be answered at once; twice as long as it would hold that anyway."""

REPLICA_BYTES_PER_TURN: Final = 1 << 18
"""Bytes of other nodes' records that are checked and written before others have a turn of the event loop: some tenths of a millisecond."""

CATCH_UP_PARTITIONS_MAX: Final = 4
"""Replicas that are behind in one fetch. Each brings up to replica.fetch.max.bytes, so those in step always find room in the answer."""

CATCH_UP_BYTES_PER_SECOND: Final = 1 << 26
"""What a node copies at most for replicas that are behind; follower.replication.throttled.rate may be less. A replica of 100 GB is there
within half an hour, and a core has most of its time for clients."""

CATCH_UP_BURST_MS: Final = 200
"""How far ahead of that rate copying may get."""

REPLICA_SESSIONS_MAX: Final = 1_000
"""Fetch sessions of replicas, one for every node that copies from this one; those of nodes that are gone make room."""

# Ends of transactions

MARKER_CALL_MS_MAX: Final = 30_000
"""How long the markers sent to a node may take to be committed there before they are sent again; what Kafka gives a request."""

MARKER_RETRY_MS_MIN: Final = 10
"""From markers that could not be written to the next attempt; it doubles up to the next figure."""

MARKER_RETRY_MS_MAX: Final = 500
"""An election is over in about that time, and until the marker is written nobody who reads committed records gets past it."""

MARKERS_TOGETHER_MAX: Final = 2_000
"""Markers in one request, some 100 bytes each in the log."""

TRANSACTION_ENTRY_MS_MAX: Final = 5_000
"""How long a coordinator may take to answer whether a transaction may write to a partition. The producer's connection is held meanwhile."""

TRANSACTION_ENTRIES_TOGETHER_MAX: Final = 1_000
"""Transactions in one request to a coordinator."""

TRANSACTION_PATIENCE_MS: Final = 100
"""How long a producer that goes on at once waits for its former transaction to be finished, before it is told to come back; Kafka's
figure, which a healthy cluster takes a tenth of."""

TRANSACTION_ENTRY_RETRY_MS: Final = 5
"""From one question whether the former transaction is finished to the next. It takes a few milliseconds."""

# Spark

SPARK_MARKERS_PARTITION_COUNT: Final = 8
"""Partitions of `__spark_markers`. Tasks of one job are spread over them; each is some files on three nodes, also where nobody uses Spark much."""

SPARK_MARKERS_SEGMENT_BYTES: Final = 1 << 20
"""What of `__spark_markers` is not compacted is the segment in use and one or two before it: a task that looks for a marker that is a year old reads
so much and what is kept, some thousand markers, in some tenths of a second."""

NEWEST_OFFSETS_FIRST: Final = 256
"""How far back from a partition's end the newest record of a key is looked for at first: a job that runs has written it within its last batch."""

NEWEST_OFFSETS_GROWTH: Final = 16
"""By how much further each next look goes back. What was read is read again, which this makes a sixteenth more."""

PIPELINES_SEGMENT_BYTES: Final = 1 << 20
"""What of `__pipelines` is not compacted is the segment in use and one or two before it, some thousand records: a command that asks how jobs are reads
so much, in some tenths of a second."""

PIPELINE_STATUS_BYTES_MAX: Final = 16 << 10
"""Of one job's record in `__pipelines`. A job has some 500 bytes, and 40 for each partition: of one with very many their lags are left out, and
their sum is not."""

PIPELINE_ERROR_CHARACTERS_MAX: Final = 2_000
"""Of what is kept of an error in `__pipelines`. Ours are a sentence or two; Spark's may repeat a plan."""

PIPELINE_HEARD_EVERY_MS: Final = 10_000
"""From one record of a job in `__pipelines` to the next while nothing happens: ten jobs are one small record a second."""

PIPELINE_SILENT_MS_MAX: Final = 60_000
"""A job that says it runs and was not heard for so long is told to have died: six records that did not come. Clocks of machines may
differ by some seconds."""

PIPELINE_STATUS_PATIENCE_MS: Final = 5_000
"""How long a record may take to `__pipelines`, and so how long a job's end may wait for its last one where brokers do not answer."""

# SQS

SQS_MESSAGE_BYTES_MAX: Final = 1 << 20
"""Body and attributes of a message, and of all messages of a batch together. As SQS has it since August 2025."""

SQS_BODY_BYTES_MAX: Final = 4 << 20
"""A request's body at the SQS door: a form writes most bytes of a message as three, and a batch of a mebibyte has some overhead besides."""

SQS_URL_BYTES_MAX: Final = 1 << 16
"""The address of a GET in the Query protocol, which has the whole message in it. Larger ones are sent as forms."""

SQS_QUERY_FIELDS_MAX: Final = 1_000
"""Parameters in the address of a GET: a message with ten attributes has 50."""

SQS_CONNECTIONS_MAX: Final = 10_000
"""Connections of the SQS door. Every worker that waits for messages holds one, and they cost some kilobytes each."""

SQS_DELETE_WAIT_MS: Final = 60_000
"""How long the name of a deleted queue rests where there are keys and nobody says otherwise. The figure of SQS."""

SQS_IDLE_MS_MAX: Final = 300_000
"""How long a silent connection is kept at the SQS door. SDKs keep theirs for a minute or so and are annoyed by those that break."""

SQS_FORM_FIELDS_MAX: Final = 2_000
"""Parameters of a form: ten messages with ten attributes of four parameters each, and what they have besides."""

SQS_FORM_DEPTH_MAX: Final = 8
"""Dots in the name of a parameter that mean something. The deepest is Entry.1.MessageAttribute.1.Value.StringValue."""

SQS_FORM_NUMBER_DIGITS_MAX: Final = 9
"""Of a place in a list."""

SQS_POLICY_BYTES_MAX: Final = 8_192
"""A policy, or a key's name. They are facts of the cluster, which every node keeps in memory; AWS says the same of policies."""

SQS_PEEK_MESSAGES_MAX: Final = 100
"""Messages that one look shows, within `QUEUE_PEEK_BYTES_MAX`."""

SQS_CREDENTIALS_BYTES_MAX: Final = 1 << 20
"""A file of access keys: some ten thousand of them, which are all kept in memory."""

SQS_ID_PREFIXES_MAX: Final = 4_096
"""Topics whose digest is remembered for message ids, 100 bytes each."""

SQS_SENDERS_KEPT_MAX: Final = 256
"""Access keys whose headers are remembered: messages of one sender share them, and what is packed or read of them. Few keys send at a time."""

JOURNAL_LINES_KEPT_MAX: Final = 2_000
"""Lines of its journal that a node keeps in memory, to show them to who may see them: those of a start, and of hours in which little happens."""

JOURNAL_LINE_CHARACTERS_MAX: Final = 4_096
"""Of a line that is kept; what is longer is cut off there. With the lines above 8 MB at the very most, and some 400 KB as a rule."""

STACKS_SHOWN_MAX: Final = 500
"""Different stacks of tasks that are shown. Tasks that wait in the same place are one of them, so that 10,000 connections are some ten."""

SIGNING_KEYS_MAX: Final = 1_024
"""Derived signing keys that are remembered, by access key, day and region. Some 1,000 bytes each; beyond that all are derived again."""
