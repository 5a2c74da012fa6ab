#include "reactor_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "big_endian.h"

/* What a peer that speaks no Kafka may be speaking, from the four bytes where a length should be. */
static const char *guess(uint32_t head) {
  static const char methods[][5] = {"GET ", "POST", "HEAD", "PUT ", "DELE",
                                    "OPTI", "CONN", "PATC", "TRAC", "PRI "};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (load_32((const uint8_t *)methods[i]) == head)
      return "an HTTP request on a port that speaks the Kafka protocol in plain text";
  return head >> 16 == 0x1603 ? "a TLS handshake on a port that speaks the Kafka protocol in plain text"
                              : NULL;
}

static enum frame_status impossible(uint32_t length, struct frame_view *view) {
  view->end = length;
  view->why = guess(length);
  return view->why ? FRAME_REFUSED : length > INT32_MAX ? FRAME_NEGATIVE : FRAME_TOO_LARGE;
}

static inline enum frame_status length_first(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                                             struct frame_view *view) {
  enum { HEAD_BYTES = 4 };
  if (size < HEAD_BYTES) {
    view->end = 0;
    return FRAME_PARTIAL;
  }
  uint32_t length = load_32(bytes);
  if (length > max_frame_bytes || length > INT32_MAX)
    return impossible(length, view);
  view->start = HEAD_BYTES;
  view->end = HEAD_BYTES + length;
  return size < view->end ? FRAME_PARTIAL : FRAME_WHOLE;
}

enum frame_status kafka_request(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                                struct frame_view *view) {
  enum { API_KEY_BYTES = 2 }; /* Produce is API key 0 */
  enum frame_status status = length_first(bytes, size, max_frame_bytes, view);
  if (status == FRAME_WHOLE)
    view->appends =
        view->end - view->start >= API_KEY_BYTES && bytes[view->start] == 0 && bytes[view->start + 1] == 0;
  return status;
}

enum frame_status kafka_answer(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                               struct frame_view *view) {
  view->appends = false;
  return length_first(bytes, size, max_frame_bytes, view);
}

enum frame_status text_line(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                            struct frame_view *view) {
  const uint8_t *newline = memchr(bytes, '\n', size);
  size_t length = newline ? (size_t)(newline - bytes) : size;
  *view = (struct frame_view){0};
  if (length > max_frame_bytes) {
    view->end = (uint32_t)length;
    return FRAME_TOO_LARGE;
  }
  if (!newline)
    return FRAME_PARTIAL;
  view->end = (uint32_t)length + 1;
  return FRAME_WHOLE;
}

int64_t frame_memory_used(const struct frame_memory *memory) {
  return __atomic_load_n(&memory->used, __ATOMIC_RELAXED);
}

void frame_memory_give_back(struct frame_memory *memory, int64_t size) {
  __atomic_fetch_sub(&memory->used, size, __ATOMIC_RELAXED);
}

static void account(struct inbox *inbox, int64_t more) {
  if (inbox->memory && !inbox->favoured)
    frame_memory_give_back(inbox->memory, -more);
}

int inbox_keep(struct inbox *inbox, const uint8_t *bytes, uint32_t size, uint32_t wanted) {
  inbox->bytes = malloc(size);
  if (!inbox->bytes)
    return -1;
  account(inbox, size);
  memcpy(inbox->bytes, bytes, size);
  inbox->have = size;
  inbox->capacity = size;
  inbox->wanted = wanted;
  return 0;
}

void inbox_clear(struct inbox *inbox) {
  free(inbox->bytes);
  account(inbox, -(int64_t)inbox->capacity);
  *inbox = (struct inbox){.memory = inbox->memory};
}

void inbox_favour(struct inbox *inbox) {
  account(inbox, -(int64_t)inbox->capacity);
  inbox->favoured = true;
}

uint8_t *inbox_take(struct inbox *inbox) {
  uint8_t *bytes = inbox->bytes;
  if (inbox->favoured) {
    inbox->favoured = false;
    account(inbox, inbox->have);
  }
  *inbox = (struct inbox){.memory = inbox->memory};
  return bytes;
}

/* A chunk, then twice the bytes received, and never beyond the frame. */
static uint32_t next_capacity(const struct inbox *inbox) {
  uint32_t more = inbox->have > RECEIVE_CHUNK_BYTES ? inbox->have : RECEIVE_CHUNK_BYTES;
  return inbox->wanted - inbox->have < more ? inbox->wanted : inbox->have + more;
}

bool inbox_has_room(const struct inbox *inbox) {
  const struct frame_memory *memory = inbox->memory;
  if (inbox->have < inbox->capacity || !memory || inbox->favoured)
    return true;
  int64_t used_by_others = frame_memory_used(memory) - inbox->capacity;
  return next_capacity(inbox) <= (memory->most - used_by_others) / 2;
}

/* Makes room behind what a large frame has so far. */
static bool inbox_grow(struct inbox *inbox) {
  if (inbox->have < inbox->capacity)
    return true;
  uint32_t capacity = next_capacity(inbox);
  uint8_t *bytes = realloc(inbox->bytes, capacity);
  if (!bytes)
    return false;
  account(inbox, (int64_t)capacity - inbox->capacity);
  inbox->bytes = bytes;
  inbox->capacity = capacity;
  return true;
}

static ssize_t read_once(read_function read, void *source, uint8_t *room, size_t size,
                         struct receipt *receipt) {
  ssize_t got;
  do
    got = read(source, room, size);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    receipt->received += (uint32_t)got;
  } else if (got == 0) {
    receipt->status = RECEIVED_END;
  } else if (errno != EAGAIN &&
             errno != EWOULDBLOCK) { /* errno is read here only: later it may be another's */
    receipt->status = RECEIVED_ERROR;
    receipt->error = errno;
  }
  return got;
}

static void receive_large(struct inbox *inbox, read_function read, void *source, struct receipt *receipt) {
  while (receipt->received < RECEIVE_PASS_BYTES) {
    if (!inbox_has_room(inbox)) {
      receipt->status = RECEIVED_NO_ROOM;
      return;
    }
    if (!inbox_grow(inbox)) {
      receipt->status = RECEIVED_ERROR;
      receipt->error = ENOMEM;
      return;
    }
    uint32_t room = inbox->capacity - inbox->have;
    ssize_t got = read_once(read, source, inbox->bytes + inbox->have, room, receipt);
    if (got <= 0)
      return;
    inbox->have += (uint32_t)got;
    if (inbox->have == inbox->wanted) {
      receipt->status = RECEIVED_FRAME;
      return;
    }
    if ((uint32_t)got < room)
      return;
  }
}

static uint8_t *slab_room(struct slabs *slabs) {
  uint32_t *current = &slabs->current;
  if (slabs->used[*current] > SLAB_BYTES - RECEIVE_CHUNK_BYTES) {
    if (*current + 1 == SLABS_MAX)
      return NULL;
    ++*current;
  }
  if (!slabs->bytes[*current])
    slabs->bytes[*current] = malloc(SLAB_BYTES);
  return slabs->bytes[*current] ? slabs->bytes[*current] + slabs->used[*current] : NULL;
}

static void receive_chunk(struct inbox *inbox, struct slabs *slabs, read_function read, void *source,
                          struct receipt *receipt) {
  enum { CACHE_LINE_BYTES = 64 };
  uint8_t *room = slab_room(slabs);
  if (!room) {
    receipt->status = RECEIVED_ERROR;
    receipt->error = ENOMEM;
    return;
  }
  uint32_t kept =
      inbox->have; /* a small frame's start is put before what comes now, so that it lies in one piece */
  if (kept)
    memcpy(room, inbox->bytes, kept);
  ssize_t got = read_once(read, source, room + kept, RECEIVE_CHUNK_BYTES - kept, receipt);
  if (got <= 0)
    return;
  inbox_clear(inbox);
  uint32_t *used = &slabs->used[slabs->current];
  receipt->status = RECEIVED_CHUNK;
  receipt->slab = slabs->current;
  receipt->start = *used;
  receipt->end = *used + kept + (uint32_t)got;
  *used = (receipt->end + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
}

void receive(struct inbox *inbox, struct slabs *slabs, read_function read, void *source,
             struct receipt *receipt) {
  *receipt = (struct receipt){.status = RECEIVED_NOTHING};
  if (inbox->wanted > RECEIVE_CHUNK_BYTES)
    receive_large(inbox, read, source, receipt);
  else
    receive_chunk(inbox, slabs, read, source, receipt);
}
