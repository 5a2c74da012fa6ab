#include "reactor_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t big_endian_32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

enum frame_status frame_next(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes, uint32_t *length) {
  if (size < FRAME_HEAD_BYTES)
    return FRAME_PARTIAL;
  *length = big_endian_32(bytes);
  if (*length > INT32_MAX)
    return FRAME_NEGATIVE;
  if (*length > max_frame_bytes)
    return FRAME_TOO_LARGE;
  return size - FRAME_HEAD_BYTES < *length ? FRAME_PARTIAL : FRAME_WHOLE;
}

const char *frame_guess(uint32_t head) {
  static const char methods[][5] = {"GET ", "POST", "HEAD", "PUT ", "DELE",
                                    "OPTI", "CONN", "PATC", "TRAC", "PRI "};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (big_endian_32((const uint8_t *)methods[i]) == head)
      return "an HTTP request";
  return head >> 16 == 0x1603 ? "a TLS handshake" : NULL;
}

int inbox_keep(struct inbox *inbox, const uint8_t *bytes, uint32_t size) {
  uint32_t wanted = size < FRAME_HEAD_BYTES ? 0 : FRAME_HEAD_BYTES + big_endian_32(bytes);
  uint32_t capacity = size;
  if (wanted > RECEIVE_CHUNK_BYTES) { /* a large frame goes on in the inbox; a small one returns to a slab */
    capacity = size < RECEIVE_CHUNK_BYTES / 2 ? RECEIVE_CHUNK_BYTES : 2 * size;
    if (capacity > wanted)
      capacity = wanted;
  }
  inbox->bytes = malloc(capacity);
  if (!inbox->bytes)
    return -1;
  memcpy(inbox->bytes, bytes, size);
  inbox->have = size;
  inbox->capacity = capacity;
  inbox->wanted = wanted;
  return 0;
}

void inbox_clear(struct inbox *inbox) {
  free(inbox->bytes);
  *inbox = (struct inbox){0};
}

/* Room behind what a large frame has so far: at most twice the bytes received, and never beyond the frame. */
static uint32_t inbox_room(struct inbox *inbox) {
  if (inbox->have == inbox->capacity) {
    uint32_t capacity = inbox->wanted - inbox->have < inbox->have ? inbox->wanted : 2 * inbox->have;
    uint8_t *bytes = realloc(inbox->bytes, capacity);
    if (!bytes)
      return 0;
    inbox->bytes = bytes;
    inbox->capacity = capacity;
  }
  return inbox->capacity - inbox->have;
}

static ssize_t read_once(read_function read, intptr_t source, uint8_t *room, size_t size,
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

static void receive_large(struct inbox *inbox, read_function read, intptr_t source, struct receipt *receipt) {
  while (receipt->received < RECEIVE_PASS_BYTES) {
    uint32_t room = inbox_room(inbox);
    if (!room) {
      receipt->status = RECEIVED_ERROR;
      receipt->error = ENOMEM;
      return;
    }
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

static void receive_chunk(struct inbox *inbox, struct slabs *slabs, read_function read, intptr_t source,
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

void receive(struct inbox *inbox, struct slabs *slabs, read_function read, intptr_t source,
             struct receipt *receipt) {
  *receipt = (struct receipt){.status = RECEIVED_NOTHING};
  if (inbox->wanted > RECEIVE_CHUNK_BYTES)
    receive_large(inbox, read, source, receipt);
  else
    receive_chunk(inbox, slabs, read, source, receipt);
}
