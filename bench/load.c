/* A load client that is never the bottleneck: sends request frames built once, counts and times the answers.
 *
 *   load PORT FRAMES CONNECTIONS DEPTH WARMUP_S SECONDS STRIDE ERROR_AT AWAKE
 *
 * FRAMES is a file of whole request frames, one after another. Request k of connection i is frame (i + k *
 * STRIDE) modulo their number, with its own correlation id; each connection keeps DEPTH of them in flight. Of
 * each answer the correlation id must be the one expected, and, where ERROR_AT >= 0, the int16 at that byte
 * of the frame (after its size) must be 0. One connection with one request in flight is served by blocking
 * calls, or, with AWAKE, by calls that do not block: waking a core that sleeps takes longer than a broker
 * does, and is then no part of what is measured. More are served by epoll. Prints one JSON line: answers,
 * bytes, seconds and latencies (in microseconds) of what was answered after WARMUP_S.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_DEPTH = 64,
  HEAD_BYTES = 128,
  SCRATCH_BYTES = 1 << 20,
  MAX_EVENTS = 64,
  MAX_FRAME_BYTES = 1 << 27
};
enum { BUCKETS_PER_DOUBLING = 64, BUCKETS = 64 * BUCKETS_PER_DOUBLING };

typedef struct {
  const uint8_t *bytes;
  size_t size;
} frame_t;

typedef struct {
  int fd;
  int index;
  uint32_t sent, answered;     /* requests; the correlation id is the number of the request */
  uint64_t sent_at[MAX_DEPTH]; /* ring by request number */
  uint8_t *out;                /* what the socket did not take yet */
  size_t out_size, out_done;
  uint8_t head[HEAD_BYTES]; /* the first bytes of the answer being received, its size included */
  size_t have;              /* bytes of the answer received, its size included */
  size_t want;              /* size of the answer with its size field, 0 while that is not known */
} connection_t;

static frame_t *frames;
static size_t frame_count, frame_max;
static int depth, stride, error_at, awake;
static uint64_t counted_from, ends_at;
static uint64_t answers, answer_bytes, first_counted, last_counted;
static uint64_t buckets[BUCKETS];
static uint64_t latency_max;
static uint8_t scratch[SCRATCH_BYTES];

static void fail(const char *what) {
  fprintf(stderr, "load: %s (errno %d: %s)\n", what, errno, strerror(errno));
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t get32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t v) {
  p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}

/* Log-linear buckets: 64 to a doubling, so a percentile is right to about 1.5 %. */
static unsigned bucket_of(uint64_t ns) {
  unsigned power = 63u - (unsigned)__builtin_clzll(ns | 1);
  if (power < 6)
    return (unsigned)ns;
  return (power - 5) * BUCKETS_PER_DOUBLING + (unsigned)((ns >> (power - 6)) & 63);
}

static double bucket_us(unsigned bucket) {
  unsigned power = bucket / BUCKETS_PER_DOUBLING;
  if (power == 0)
    return bucket / 1e3;
  return ((64.0 + bucket % BUCKETS_PER_DOUBLING + 0.5) * (double)(1ull << (power - 1))) / 1e3;
}

static double percentile_us(double share) {
  uint64_t rank = (uint64_t)((double)answers * share), seen = 0;
  for (unsigned i = 0; i < BUCKETS; i++) {
    seen += buckets[i];
    if (seen > rank)
      return bucket_us(i);
  }
  return (double)latency_max / 1e3;
}

static void count_answer(uint64_t sent_at, uint64_t now, size_t bytes) {
  if (now < counted_from || sent_at < counted_from)
    return;
  uint64_t latency = now - sent_at;
  if (!answers++)
    first_counted = now;
  last_counted = now;
  answer_bytes += bytes;
  buckets[bucket_of(latency)]++;
  if (latency > latency_max)
    latency_max = latency;
}

static void check_answer(const uint8_t *head, size_t size, uint32_t correlation_id) {
  if (get32(head + 4) != correlation_id)
    fail("an answer is not the next one of its connection");
  if (error_at < 0)
    return;
  size_t at = 4 + (size_t)error_at;
  if (at + 2 > size || at + 2 > HEAD_BYTES)
    fail("an answer is too short to hold its error code");
  if (head[at] || head[at + 1]) {
    fprintf(stderr, "load: error code %d in an answer\n", head[at] << 8 | head[at + 1]);
    exit(1);
  }
}

static void load_frames(const char *path) {
  struct stat st;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &st))
    fail("cannot open the frames");
  uint8_t *all = malloc((size_t)st.st_size);
  size_t total = (size_t)st.st_size, at = 0;
  if (!all || read(fd, all, total) != (ssize_t)total)
    fail("cannot read the frames");
  frames = calloc(total / 8 + 1, sizeof *frames);
  while (at + 12 <= total) {
    size_t size = get32(all + at) + 4u;
    if (at + size > total)
      fail("the last frame is cut");
    frames[frame_count++] = (frame_t){all + at, size};
    frame_max = size > frame_max ? size : frame_max;
    at += size;
  }
  if (!frame_count || at != total)
    fail("the file does not hold whole frames");
  close(fd);
}

static int connect_to(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
    fail("cannot connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

/* Appends the next request to the connection's output. The correlation id is at byte 8: size, api key,
 * version. */
static void queue_request(connection_t *c, uint64_t now) {
  const frame_t *f = &frames[((size_t)c->index + (size_t)c->sent * (size_t)stride) % frame_count];
  memcpy(c->out + c->out_size, f->bytes, f->size);
  put32(c->out + c->out_size + 8, c->sent);
  c->out_size += f->size;
  c->sent_at[c->sent++ % MAX_DEPTH] = now;
}

static void fill(connection_t *c, uint64_t now) {
  if (now >= ends_at)
    return;
  while (c->sent - c->answered < (uint32_t)depth)
    queue_request(c, now);
}

/* Sends what is queued; true when everything left. */
static int flush_out(connection_t *c) {
  while (c->out_done < c->out_size) {
    ssize_t n = send(c->fd, c->out + c->out_done, c->out_size - c->out_done, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
      break;
    if (n < 0)
      fail("send");
    c->out_done += (size_t)n;
  }
  if (c->out_done == c->out_size)
    c->out_done = c->out_size = 0;
  return c->out_size == 0;
}

/* Feeds received bytes to the answers they belong to. */
static void feed(connection_t *c, const uint8_t *bytes, size_t size, uint64_t now) {
  while (size) {
    size_t part = c->want ? c->want - c->have : 4 - c->have;
    part = part < size ? part : size;
    if (c->have < HEAD_BYTES) {
      size_t room = HEAD_BYTES - c->have;
      memcpy(c->head + c->have, bytes, part < room ? part : room);
    }
    c->have += part, bytes += part, size -= part;
    if (!c->want && c->have == 4) {
      c->want = get32(c->head) + 4u;
      if (c->want < 8 || c->want > MAX_FRAME_BYTES)
        fail("an answer with an impossible size");
    } else if (c->want && c->have == c->want) {
      check_answer(c->head, c->want, c->answered);
      count_answer(c->sent_at[c->answered++ % MAX_DEPTH], now, c->want);
      c->have = c->want = 0;
    }
  }
}

static void receive(connection_t *c) {
  for (int turn = 0; turn < 4; turn++) {
    ssize_t n = recv(c->fd, scratch, sizeof scratch, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0)
      fail(n ? "recv" : "the broker closed a connection");
    feed(c, scratch, (size_t)n, now_ns());
    if ((size_t)n < sizeof scratch)
      return;
  }
}

static void open_connection(connection_t *c, int port, int index) {
  c->fd = connect_to(port);
  c->index = index;
  c->out = malloc(frame_max * (size_t)(depth + 1) * 2);
  if (!c->out)
    fail("no memory");
}

static void run_epoll(int port, int count) {
  connection_t *all = calloc((size_t)count, sizeof *all);
  int poll = epoll_create1(0), open = count;
  struct epoll_event events[MAX_EVENTS];
  for (int i = 0; i < count; i++) {
    open_connection(&all[i], port, i);
    fcntl(all[i].fd, F_SETFL, O_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &all[i]};
    epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &e);
  }
  for (int i = 0; i < count; i++)
    fill(&all[i], now_ns()), flush_out(&all[i]);
  while (open) {
    int ready = epoll_wait(poll, events, MAX_EVENTS, 10000);
    if (ready == 0)
      fail("no answer for 10 s");
    for (int k = 0; k < ready; k++) {
      connection_t *c = events[k].data.ptr;
      if (events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(c);
      if (c->out_size == 0)
        fill(c, now_ns());
      int sent = flush_out(c);
      struct epoll_event e = {.events = EPOLLIN | (sent ? 0u : EPOLLOUT), .data.ptr = c};
      if (!sent || (events[k].events & EPOLLOUT))
        epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &e);
      if (sent && c->sent == c->answered && now_ns() >= ends_at)
        close(c->fd), open--;
    }
  }
}

static void run_alone(int port) {
  connection_t c = {0};
  open_connection(&c, port, 0);
  for (uint64_t now = now_ns(); now < ends_at; now = now_ns()) {
    queue_request(&c, now);
    flush_out(&c);
    while (c.answered < c.sent) {
      ssize_t n = recv(c.fd, scratch, sizeof scratch, awake ? MSG_DONTWAIT : 0);
      if (n < 0 && errno == EAGAIN && awake)
        continue;
      if (n <= 0)
        fail(n ? "recv" : "the broker closed the connection");
      feed(&c, scratch, (size_t)n, now_ns());
    }
  }
  close(c.fd);
}

int main(int argc, char **argv) {
  if (argc != 10)
    return fprintf(stderr,
                   "usage: load PORT FRAMES CONNECTIONS DEPTH WARMUP_S SECONDS STRIDE ERROR_AT AWAKE\n"),
           2;
  int port = atoi(argv[1]), count = atoi(argv[3]);
  depth = atoi(argv[4]), stride = atoi(argv[7]), error_at = atoi(argv[8]), awake = atoi(argv[9]);
  if (count < 1 || depth < 1 || depth > MAX_DEPTH || error_at > HEAD_BYTES - 6)
    return fprintf(stderr, "load: a count is out of bounds\n"), 2;
  load_frames(argv[2]);
  counted_from = now_ns() + (uint64_t)(atof(argv[5]) * 1e9);
  ends_at = counted_from + (uint64_t)(atof(argv[6]) * 1e9);
  if (count == 1 && depth == 1)
    run_alone(port);
  else
    run_epoll(port, count);
  double seconds = (double)(last_counted - first_counted) / 1e9;
  printf("{\"answers\": %llu, \"bytes\": %llu, \"seconds\": %.6f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
         "\"p999_us\": %.2f, "
         "\"max_us\": %.2f}\n",
         (unsigned long long)answers, (unsigned long long)answer_bytes, seconds, percentile_us(0.50),
         percentile_us(0.99), percentile_us(0.999), (double)latency_max / 1e3);
  return 0;
}
