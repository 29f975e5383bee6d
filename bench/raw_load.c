/* A Kafka client that costs next to nothing, so that what is measured is the broker.
 *
 *   raw_load produce HOST PORT TOPIC PARTITIONS CONNECTIONS DEPTH SECONDS BATCH_FILE RECORDS_PER_BATCH
 *   raw_load fetch   HOST PORT TOPIC PARTITIONS CONNECTIONS FETCH_BYTES
 *
 * produce: every connection keeps DEPTH requests unanswered. A request carries one prebuilt batch (BATCH_FILE, one
 * v2 record batch) for one partition, acks=all; partitions take turns over all connections. The first quarter of
 * the time is warm-up: it is sent and counted as sent, but not measured.
 * fetch: partition p belongs to connection p mod CONNECTIONS, which asks for its partitions in turn, from offset 0
 * to the high watermark.
 *
 * Prints one line of JSON. Any error code, lost connection or answer out of order ends the run with status 1.
 *
 * Produce v7 and Fetch v11 are spoken: the newest without compact encoding, known to every broker since Kafka 2.3.
 * One thread, epoll; CRCs are not checked, because the load must not become the bottleneck.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 512, CONNECTIONS_MAX = 256, DEPTH_MAX = 4096, ANSWER_BYTES_KEPT = 1 << 16 };

typedef struct {
    int socket;
    int index;
    /* The request being written: its head, then the batch, of which `written` bytes are out. */
    uint8_t head[HEAD_BYTES_MAX];
    size_t head_bytes, written;
    int writing, waits_for_room;
    /* Requests unanswered, oldest first, in a ring. Brokers answer in order. */
    uint64_t sent_at_ns[DEPTH_MAX];
    int partition_of[DEPTH_MAX];
    uint32_t sent_count, answered_count;
    /* The answer being read. */
    uint8_t *answer;
    size_t answer_capacity, answer_bytes;
    int partition_next, partitions_left;
} Connection;

static const char *topic;
static int partition_count, connection_count, depth;
static Connection *connections;
static int poller;

static const uint8_t *batch;
static size_t batch_bytes;
static int partition_turn;
static uint64_t measure_from_ns, send_until_ns;

static int64_t *fetch_offset;
static int fetch_bytes_max;
static int partitions_unfinished;

static uint64_t *latencies_ns;
static size_t latency_count, latency_capacity;
static uint64_t requests_total, records_total, bytes_total;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint8_t *put16(uint8_t *at, int value) { uint16_t raw = htobe16((uint16_t)value); memcpy(at, &raw, 2); return at + 2; }
static uint8_t *put32(uint8_t *at, int64_t value) { uint32_t raw = htobe32((uint32_t)value); memcpy(at, &raw, 4); return at + 4; }
static uint8_t *put64(uint8_t *at, int64_t value) { uint64_t raw = htobe64((uint64_t)value); memcpy(at, &raw, 8); return at + 8; }
static uint8_t *put_text(uint8_t *at, const char *text) {
    size_t size = strlen(text);
    at = put16(at, (int)size);
    memcpy(at, text, size);
    return at + size;
}
static int16_t get16(const uint8_t *at) { uint16_t raw; memcpy(&raw, at, 2); return (int16_t)be16toh(raw); }
static int32_t get32(const uint8_t *at) { uint32_t raw; memcpy(&raw, at, 4); return (int32_t)be32toh(raw); }
static int64_t get64(const uint8_t *at) { uint64_t raw; memcpy(&raw, at, 8); return (int64_t)be64toh(raw); }

static uint8_t *begin_request(Connection *c, int api_key, int version) {
    uint8_t *at = c->head + 4;
    at = put16(at, api_key);
    at = put16(at, version);
    at = put32(at, c->sent_count);
    return put_text(at, "raw-load");
}

static void end_request(Connection *c, uint8_t *end, size_t body_bytes, int partition) {
    c->head_bytes = (size_t)(end - c->head);
    put32(c->head, (int64_t)(c->head_bytes - 4 + body_bytes));
    c->written = 0;
    c->writing = 1;
    c->sent_at_ns[c->sent_count % DEPTH_MAX] = now_ns();
    c->partition_of[c->sent_count % DEPTH_MAX] = partition;
    c->sent_count++;
}

static void begin_produce(Connection *c) {
    int partition = partition_turn++ % partition_count;
    uint8_t *at = begin_request(c, 0, 7);
    at = put16(at, -1);      /* no transaction */
    at = put16(at, -1);      /* acks=all */
    at = put32(at, 30000);   /* timeout */
    at = put32(at, 1);
    at = put_text(at, topic);
    at = put32(at, 1);
    at = put32(at, partition);
    at = put32(at, (int64_t)batch_bytes);
    end_request(c, at, batch_bytes, partition);
}

static void begin_fetch(Connection *c) {
    int partition;
    do { /* the connection's next partition that is not read to its end */
        partition = c->partition_next;
        c->partition_next += connection_count;
        if (c->partition_next >= partition_count) c->partition_next = c->index;
    } while (fetch_offset[partition] < 0);
    uint8_t *at = begin_request(c, 1, 11);
    at = put32(at, -1);      /* a consumer, not a replica */
    at = put32(at, 500);     /* longest wait */
    at = put32(at, 0);       /* least bytes: an empty partition is answered at once */
    at = put32(at, fetch_bytes_max);
    *at++ = 0;               /* read uncommitted */
    at = put32(at, 0);       /* no session */
    at = put32(at, -1);
    at = put32(at, 1);
    at = put_text(at, topic);
    at = put32(at, 1);
    at = put32(at, partition);
    at = put32(at, -1);      /* leader epoch not known */
    at = put64(at, fetch_offset[partition]);
    at = put64(at, -1);
    at = put32(at, fetch_bytes_max);
    at = put32(at, 0);       /* nothing forgotten */
    at = put_text(at, "");   /* no rack */
    end_request(c, at, 0, partition);
}

static int may_send(Connection *c, uint64_t now) {
    if ((int)(c->sent_count - c->answered_count) >= depth) return 0;
    return batch ? now < send_until_ns : c->partitions_left > 0;
}

static void watch(Connection *c, int for_room) {
    if (c->waits_for_room == for_room) return;
    struct epoll_event event = {.events = EPOLLIN | (for_room ? EPOLLOUT : 0u), .data.ptr = c};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, c->socket, &event)) fail("epoll_ctl: %s", strerror(errno));
    c->waits_for_room = for_room;
}

static void send_what_may_be_sent(Connection *c) {
    for (;;) {
        if (!c->writing) {
            if (!may_send(c, now_ns())) break;
            if (batch) begin_produce(c); else begin_fetch(c);
        }
        size_t body_bytes = batch ? batch_bytes : 0;
        while (c->written < c->head_bytes + body_bytes) {
            struct iovec pieces[2];
            int count = 0;
            size_t body_written = 0;
            if (c->written < c->head_bytes)
                pieces[count++] = (struct iovec){c->head + c->written, c->head_bytes - c->written};
            else
                body_written = c->written - c->head_bytes;
            if (body_bytes) pieces[count++] = (struct iovec){(void *)(batch + body_written), body_bytes - body_written};
            ssize_t written = writev(c->socket, pieces, count);
            if (written < 0) {
                if (errno != EAGAIN) fail("write: %s", strerror(errno));
                watch(c, 1);
                return;
            }
            c->written += (size_t)written;
        }
        c->writing = 0;
    }
    watch(c, 0);
}

static void note_latency(uint64_t sent_at_ns, uint64_t now) {
    if (sent_at_ns < measure_from_ns) return;
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity ? latency_capacity * 2 : 1 << 16;
        latencies_ns = realloc(latencies_ns, latency_capacity * sizeof *latencies_ns);
        if (!latencies_ns) fail("out of memory");
    }
    latencies_ns[latency_count++] = now - sent_at_ns;
}

static const uint8_t *skip_topic(const uint8_t *at) {
    if (get32(at) != 1) fail("%d topics answered instead of 1", get32(at));
    at += 4;
    at += 2 + get16(at);
    if (get32(at) != 1) fail("%d partitions answered instead of 1", get32(at));
    return at + 4;
}

static void take_partition(const uint8_t *at, int partition) {
    if (get32(at) != partition) fail("partition %d answered instead of %d", get32(at), partition);
    if (get16(at + 4)) fail("partition %d: error code %d", partition, get16(at + 4));
}

static void take_records(Connection *c, int partition, const uint8_t *records, int32_t size, int64_t high_watermark) {
    int32_t position = 0;
    int64_t next = fetch_offset[partition];
    while (size - position >= 61 && get32(records + position + 8) + 12 <= size - position) {
        const uint8_t *header = records + position;
        next = get64(header) + get32(header + 23) + 1;
        records_total += (uint64_t)get32(header + 57);
        position += get32(header + 8) + 12;
    }
    bytes_total += (uint64_t)position;
    fetch_offset[partition] = next;
    if (next >= high_watermark) {
        fetch_offset[partition] = -1;
        c->partitions_left--;
        partitions_unfinished--;
    }
}

static void take_answer(Connection *c, const uint8_t *answer, int records_per_batch) {
    uint64_t now = now_ns();
    if ((uint32_t)get32(answer) != c->answered_count) fail("answer %u out of order", (uint32_t)get32(answer));
    int partition = c->partition_of[c->answered_count % DEPTH_MAX];
    note_latency(c->sent_at_ns[c->answered_count % DEPTH_MAX], now);
    c->answered_count++;
    requests_total++;
    if (batch) {
        take_partition(skip_topic(answer + 4), partition);
        records_total += (uint64_t)records_per_batch;
        bytes_total += batch_bytes;
        return;
    }
    if (get16(answer + 8)) fail("fetch: error code %d", get16(answer + 8));
    const uint8_t *at = skip_topic(answer + 14);
    take_partition(at, partition);
    int64_t high_watermark = get64(at + 6);
    int32_t aborted_count = get32(at + 30);
    at += 34 + (aborted_count > 0 ? aborted_count * 16 : 0) + 4;
    take_records(c, partition, at + 4, get32(at) < 0 ? 0 : get32(at), high_watermark);
}

static void receive(Connection *c, int records_per_batch) {
    for (;;) {
        if (c->answer_capacity - c->answer_bytes < ANSWER_BYTES_KEPT) {
            c->answer_capacity = c->answer_capacity ? c->answer_capacity * 2 : 4 * ANSWER_BYTES_KEPT;
            c->answer = realloc(c->answer, c->answer_capacity);
            if (!c->answer) fail("out of memory");
        }
        size_t room = c->answer_capacity - c->answer_bytes;
        ssize_t received = recv(c->socket, c->answer + c->answer_bytes, room, 0);
        if (received == 0) fail("the broker closed the connection");
        if (received < 0) {
            if (errno != EAGAIN) fail("read: %s", strerror(errno));
            return;
        }
        c->answer_bytes += (size_t)received;
        size_t position = 0;
        while (c->answer_bytes - position >= 4) {
            size_t size = (size_t)get32(c->answer + position);
            if (c->answer_bytes - position - 4 < size) break;
            take_answer(c, c->answer + position + 4, records_per_batch);
            position += 4 + size;
        }
        if (position) {
            memmove(c->answer, c->answer + position, c->answer_bytes - position);
            c->answer_bytes -= position;
        }
        if ((size_t)received < room) return;
    }
}

static void open_connections(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is not an IPv4 address", host);
    connections = calloc((size_t)connection_count, sizeof *connections);
    poller = epoll_create1(0);
    if (!connections || poller < 0) fail("cannot start");
    for (int index = 0; index < connection_count; index++) {
        Connection *c = &connections[index];
        int on = 1;
        c->index = c->partition_next = index;
        c->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->socket, (struct sockaddr *)&address, sizeof address)) fail("connect %s:%d: %s", host, port, strerror(errno));
        setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(c->socket, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, c->socket, &event)) fail("epoll_ctl: %s", strerror(errno));
    }
}

static int unfinished(void) {
    if (!batch) return partitions_unfinished > 0;
    if (now_ns() < send_until_ns) return 1;
    for (int index = 0; index < connection_count; index++)
        if (connections[index].writing || connections[index].sent_count != connections[index].answered_count) return 1;
    return 0;
}

static void run(int records_per_batch) {
    struct epoll_event events[64];
    for (int index = 0; index < connection_count; index++) send_what_may_be_sent(&connections[index]);
    while (unfinished()) {
        int count = epoll_wait(poller, events, 64, 60000);
        if (count == 0) fail("nothing came from the broker in 60 s");
        for (int index = 0; index < count; index++) {
            Connection *c = events[index].data.ptr;
            if (events[index].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c, records_per_batch);
            send_what_may_be_sent(c);
        }
    }
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double latency_ms(double share) {
    if (!latency_count) return 0;
    size_t index = (size_t)(share * (double)latency_count);
    return (double)latencies_ns[index < latency_count ? index : latency_count - 1] / 1e6;
}

static void load_batch(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot read %s", path);
    batch_bytes = (size_t)ftell(file);
    uint8_t *bytes = malloc(batch_bytes);
    rewind(file);
    if (!bytes || fread(bytes, 1, batch_bytes, file) != batch_bytes) fail("cannot read %s", path);
    fclose(file);
    batch = bytes;
}

int main(int count, char **arguments) {
    int produces = count == 11 && !strcmp(arguments[1], "produce");
    if (!produces && !(count == 8 && !strcmp(arguments[1], "fetch"))) fail("usage: see the head of raw_load.c");
    topic = arguments[4];
    partition_count = atoi(arguments[5]);
    connection_count = atoi(arguments[6]);
    depth = produces ? atoi(arguments[7]) : 1;
    if (partition_count < 1 || connection_count < 1 || connection_count > CONNECTIONS_MAX || depth < 1 || depth > DEPTH_MAX
        || strlen(topic) > 249) fail("a number is out of range");
    int records_per_batch = 0;
    if (!produces && connection_count > partition_count) connection_count = partition_count;
    open_connections(arguments[2], atoi(arguments[3]));
    uint64_t started_ns = now_ns();
    measure_from_ns = started_ns;
    if (produces) {
        uint64_t duration_ns = (uint64_t)(atof(arguments[8]) * 1e9);
        load_batch(arguments[9]);
        records_per_batch = atoi(arguments[10]);
        measure_from_ns = started_ns + duration_ns / 4;
        send_until_ns = started_ns + duration_ns;
    } else {
        fetch_bytes_max = atoi(arguments[7]);
        fetch_offset = calloc((size_t)partition_count, sizeof *fetch_offset);
        if (!fetch_offset) fail("out of memory");
        partitions_unfinished = partition_count;
        for (int partition = 0; partition < partition_count; partition++) connections[partition % connection_count].partitions_left++;
    }
    run(records_per_batch);
    double seconds = (double)(now_ns() - measure_from_ns) / 1e9;
    qsort(latencies_ns, latency_count, sizeof *latencies_ns, by_size);
    printf("{\"requests\": %llu, \"records\": %llu, \"bytes\": %llu, \"measured_requests\": %zu, \"measured_seconds\": %.6f, "
           "\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f}\n",
           (unsigned long long)requests_total, (unsigned long long)records_total, (unsigned long long)bytes_total, latency_count,
           seconds, latency_ms(0.5), latency_ms(0.99), latency_ms(0.999), latency_ms(1));
    return 0;
}
