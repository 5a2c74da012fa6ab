/* What tests give the loop in place of plain bytes and Kafka's frames; seam_kit.py says what, and does the
 * same in Python. A transport of two kinds: `veil` changes every byte, and `records` besides has a handshake,
 * records that are taken only when they are whole, moments at which it sends nothing before the other side
 * has answered, and an orderly end. A framing: lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "reactor_frames.h"
#include "reactor_send.h"
#include "reactor_transport.h"

enum {
  MASK = 0x5A,
  HEAD_BYTES = 3, /* kind, and how many bytes follow */
  RECORD_BYTES = 4096,
  HELD_BYTES = 64 * 1024, /* in each direction, at which it takes no more */
  RAW_BYTES = HEAD_BYTES + RECORD_BYTES,
  GREETING_RECORDS = 150,      /* more than a socket takes at once */
  ASK_EVERY_BYTES = 30 * 1000, /* less than a socket takes at once, which can then still be written to */
};

struct bytes {
  uint8_t at[HELD_BYTES + 2 * RAW_BYTES];
  size_t begin, end;
};

struct session {
  bool records, client, established, waits, ended, has_finished, failed;
  uint32_t greeting_left, since_asked;
  struct bytes raw, plain, out;
  const char *trouble;
};

struct seam_transport {
  struct transport table;
  bool records, client;
};

static size_t left_in(const struct bytes *bytes) { return bytes->end - bytes->begin; }

static void compact(struct bytes *bytes) {
  memmove(bytes->at, bytes->at + bytes->begin, left_in(bytes));
  bytes->end = left_in(bytes);
  bytes->begin = 0;
}

static void put(struct bytes *to, const uint8_t *from, size_t size) {
  compact(to);
  for (size_t i = 0; i < size; i++)
    to->at[to->end++] = from[i] ^ MASK;
}

static void put_record(struct session *session, char kind, const uint8_t *payload, size_t size) {
  const uint8_t head[HEAD_BYTES] = {(uint8_t)kind, (uint8_t)(size >> 8), (uint8_t)size};
  put(&session->out, head, HEAD_BYTES);
  put(&session->out, payload, size);
}

static int fail(struct session *session, const char *trouble) {
  session->failed = true;
  session->trouble = trouble;
  errno = EPROTO;
  return -1;
}

static void tell(struct peer *peer, struct session *session) {
  bool has_room = left_in(&session->plain) < HELD_BYTES;
  if (!has_room)
    session->waits = false; /* the answer may be behind bytes that nobody takes before others have left */
  peer->wants = (left_in(&session->out) ? EPOLLOUT : 0) |
                ((!session->established || session->waits) && has_room ? EPOLLIN : 0);
  peer->bars = !session->established ? EPOLLIN | EPOLLOUT : session->waits ? EPOLLOUT : 0;
  peer->ready = session->established && (left_in(&session->plain) || session->ended);
}

/* 0, or -1 where the socket failed. */
static int flush(struct peer *peer, struct session *session) {
  struct bytes *out = &session->out;
  static const uint8_t padding[RECORD_BYTES];
  for (;;) {
    while (session->greeting_left && left_in(out) < HELD_BYTES) {
      session->greeting_left--;
      put_record(session, session->greeting_left ? 'P' : 'H', padding,
                 session->greeting_left ? RECORD_BYTES : 0);
    }
    if (!left_in(out))
      return 0;
    ssize_t sent = send(peer->fd, out->at + out->begin, left_in(out), MSG_NOSIGNAL);
    if (sent < 0)
      return errno == EAGAIN || errno == EINTR ? 0 : -1;
    out->begin += (size_t)sent;
  }
}

static int take_record(struct session *session, char kind, const uint8_t *payload, size_t size) {
  if (kind == 'D' && session->established) {
    compact(&session->plain);
    memcpy(session->plain.at + session->plain.end, payload, size);
    session->plain.end += size;
  } else if (kind == 'R' && session->established) {
    put_record(session, 'K', NULL, 0);
  } else if (kind == 'K' && session->established) {
    session->waits = false;
  } else if (kind == 'C') {
    session->ended = true;
  } else if (kind == 'H' && !session->established && session->client) {
    put_record(session, 'F', NULL, 0);
    session->established = true;
  } else if (kind == 'H' && !session->established) {
    session->greeting_left = GREETING_RECORDS;
  } else if (kind == 'F' && !session->established && !session->client) {
    session->established = true;
  } else if (kind != 'P' || session->established || !session->client) {
    return fail(session, "no record can be like this");
  }
  return 0;
}

/* Takes records while there is room for what they hold; 1: one was taken. */
static int take_records(struct session *session) {
  int taken = 0;
  struct bytes *raw = &session->raw;
  while (left_in(raw) >= HEAD_BYTES && left_in(&session->plain) < HELD_BYTES &&
         left_in(&session->out) < HELD_BYTES) {
    const uint8_t *record = raw->at + raw->begin;
    size_t size = (size_t)record[1] << 8 | record[2];
    if (size > RECORD_BYTES)
      return fail(session, "a record is too long");
    if (left_in(raw) < HEAD_BYTES + size)
      break;
    if (take_record(session, (char)record[0], record + HEAD_BYTES, size) < 0)
      return -1;
    raw->begin += HEAD_BYTES + size;
    taken = 1;
  }
  return taken;
}

/* One recv; 1: something came of it. */
static int pull(struct peer *peer, struct session *session) {
  if (session->failed) {
    errno = EPROTO;
    return -1;
  }
  int taken = take_records(session);
  if (taken)
    return taken;
  struct bytes *raw = &session->raw;
  compact(raw);
  if (raw->end == sizeof raw->at)
    return 0; /* until somebody takes what is held */
  ssize_t got = recv(peer->fd, raw->at + raw->end, sizeof raw->at - raw->end, 0);
  if (got < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (got == 0)
    return fail(session, "the stream was cut");
  for (size_t i = 0; i < (size_t)got; i++)
    raw->at[raw->end++] ^= MASK;
  return take_records(session);
}

static int seam_open(const struct transport *transport, struct peer *peer) {
  const struct seam_transport *seam = (const struct seam_transport *)transport;
  struct session *session = peer->session = calloc(1, sizeof *session);
  if (!session)
    return -1;
  session->records = seam->records;
  session->client = seam->client;
  session->established = !seam->records;
  if (seam->records && seam->client)
    put_record(session, 'H', NULL, 0);
  tell(peer, session);
  return 0;
}

static ssize_t seam_receive(void *source, void *room, size_t size) {
  struct peer *peer = source;
  struct session *session = peer->session;
  if (!session->records) {
    ssize_t got = recv(peer->fd, room, size, 0);
    for (ssize_t i = 0; i < got; i++)
      ((uint8_t *)room)[i] ^= MASK;
    return got;
  }
  while (!left_in(&session->plain) && !session->ended) {
    int came = pull(peer, session);
    if (came < 0)
      return -1;
    if (!came)
      break;
  }
  if (flush(peer, session) < 0)
    return -1;
  size_t taken = left_in(&session->plain) < size ? left_in(&session->plain) : size;
  memcpy(room, session->plain.at + session->plain.begin, taken);
  session->plain.begin += taken;
  tell(peer, session);
  if (taken || session->ended)
    return (ssize_t)taken;
  errno = EAGAIN;
  return -1;
}

static size_t seal(struct session *session, const uint8_t *bytes, size_t size) {
  size_t room = HELD_BYTES - left_in(&session->out);
  if (!session->records) {
    size = size < room ? size : room;
    put(&session->out, bytes, size);
    return size;
  }
  size_t taken = 0;
  while (taken < size && left_in(&session->out) < HELD_BYTES && !session->waits) {
    size_t piece = size - taken < RECORD_BYTES ? size - taken : RECORD_BYTES;
    put_record(session, 'D', bytes + taken, piece);
    taken += piece;
    session->since_asked += (uint32_t)piece;
    if (session->since_asked >= ASK_EVERY_BYTES) {
      put_record(session, 'R', NULL, 0);
      session->since_asked = 0;
      session->waits = true;
    }
  }
  return taken;
}

static ssize_t seam_send(struct peer *peer, const struct iovec *parts, uint32_t count, bool more) {
  struct session *session = peer->session;
  (void)more;
  size_t taken = 0;
  if (flush(peer, session) < 0)
    return -1;
  if (session->established && !left_in(&session->out))
    for (uint32_t i = 0; i < count; i++) {
      size_t of_part = 0;
      while (of_part < parts[i].iov_len && !session->waits && !left_in(&session->out)) {
        of_part += seal(session, (const uint8_t *)parts[i].iov_base + of_part, parts[i].iov_len - of_part);
        if (flush(peer, session) < 0)
          return -1;
      }
      taken += of_part;
      if (of_part < parts[i].iov_len)
        break;
    }
  tell(peer, session);
  if (taken)
    return (ssize_t)taken;
  errno = EAGAIN;
  return -1;
}

static int seam_attend(struct peer *peer) {
  struct session *session = peer->session;
  if (flush(peer, session) < 0)
    return -1;
  if (session->records && (!session->established || session->waits) &&
      left_in(&session->plain) < HELD_BYTES) {
    if (pull(peer, session) < 0)
      return -1;
    if (flush(peer, session) < 0)
      return -1;
  }
  tell(peer, session);
  return 0;
}

static bool seam_finish(struct peer *peer) {
  struct session *session = peer->session;
  if (session->failed)
    return true;
  if (session->records && session->established && !session->has_finished) {
    session->has_finished = true;
    put_record(session, 'C', NULL, 0);
  }
  bool done = flush(peer, session) < 0 || !left_in(&session->out);
  tell(peer, session);
  return done;
}

static void seam_close(struct peer *peer) {
  free(peer->session);
  peer->session = NULL;
}

static const char *seam_trouble(const struct peer *peer) {
  return ((const struct session *)peer->session)->trouble;
}

#define SEAM(is_records, is_client)                                                                          \
  {                                                                                                          \
      .table = {.open = seam_open,                                                                           \
                .receive = seam_receive,                                                                     \
                .send = seam_send,                                                                           \
                .attend = seam_attend,                                                                       \
                .finish = seam_finish,                                                                       \
                .close = seam_close,                                                                         \
                .trouble = seam_trouble},                                                                    \
      .records = is_records,                                                                                 \
      .client = is_client,                                                                                   \
  }

const struct seam_transport veil = SEAM(false, false);
const struct seam_transport records = SEAM(true, false);
const struct seam_transport records_of_client = SEAM(true, true);

/* A frame is a line, without its end; one that begins with "!" cannot be. */
enum frame_status lines(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                        struct frame_view *view) {
  const uint8_t *end = memchr(bytes, '\n', size);
  *view = (struct frame_view){0};
  if (size && bytes[0] == '!') {
    view->why = "no line begins like this";
    return FRAME_REFUSED;
  }
  if (end ? (size_t)(end - bytes) > max_frame_bytes : size > max_frame_bytes) {
    view->end = (uint32_t)(end ? (size_t)(end - bytes) : size);
    return FRAME_TOO_LARGE;
  }
  view->end = end ? (uint32_t)(end - bytes) + 1 : 0;
  return end ? FRAME_WHOLE : FRAME_PARTIAL;
}
