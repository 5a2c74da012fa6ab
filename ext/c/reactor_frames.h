/* Framing: a frame is an int32 length and then that many bytes. What a socket gave lands in a slab shared by
 * all sockets of a pass; only the start of a frame that is not whole yet is kept, in the connection's inbox,
 * whose memory grows with the bytes received and never with the length announced. Knows neither Python nor
 * sockets: the caller hands in the function that reads. */
#ifndef PYKAFKAD_REACTOR_FRAMES_H
#define PYKAFKAD_REACTOR_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  FRAME_HEAD_BYTES = 4,
  RECEIVE_CHUNK_BYTES = 64 * 1024,      /* the most one socket puts into a slab in one pass */
  RECEIVE_PASS_BYTES = 256 * 1024,      /* the most one socket puts into its inbox in one pass */
  SLAB_BYTES = 8 * RECEIVE_CHUNK_BYTES, /* chunks lie packed, so small requests share few cache lines */
  EVENTS_PER_PASS = 64,
  /* enough for EVENTS_PER_PASS full chunks: an event that is reported but not served starves its socket */
  SLABS_MAX = EVENTS_PER_PASS / 7 + 2,
};

enum frame_status { FRAME_WHOLE, FRAME_PARTIAL, FRAME_NEGATIVE, FRAME_TOO_LARGE };

/* Looks for one frame at the start of bytes[0..size). WHOLE: *length bytes follow the head. */
enum frame_status frame_next(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes, uint32_t *length);

/* What a peer that speaks no Kafka may be speaking, from the four bytes where a length should be; NULL: no
 * idea. */
const char *frame_guess(uint32_t head);

struct inbox {
  uint8_t *bytes; /* NULL while there is no started frame */
  uint32_t have, capacity;
  uint32_t wanted; /* head and body; 0 while fewer than FRAME_HEAD_BYTES came */
};

int inbox_keep(struct inbox *inbox, const uint8_t *bytes, uint32_t size); /* 0, or -1: no memory */
void inbox_clear(struct inbox *inbox);

struct slabs {
  uint8_t *bytes[SLABS_MAX];
  uint32_t used[SLABS_MAX];
  uint32_t current;
};

enum receive_status { RECEIVED_NOTHING, RECEIVED_CHUNK, RECEIVED_FRAME, RECEIVED_END, RECEIVED_ERROR };

/* CHUNK: bytes [start, end) of slab number `slab`. FRAME: the inbox holds exactly one whole frame. */
struct receipt {
  enum receive_status status;
  int error;
  uint32_t slab, start, end;
  uint32_t received;
};

/* Returns bytes read, 0 at the end of the stream, or -1 with errno set, as recv does. */
typedef ssize_t (*read_function)(intptr_t source, void *room, size_t size);

void receive(struct inbox *inbox, struct slabs *slabs, read_function read, intptr_t source,
             struct receipt *receipt);

#endif
