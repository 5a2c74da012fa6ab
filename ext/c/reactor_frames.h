/* Framing: what bytes of a stream make a frame, and where they are kept until they do. What a socket gave
 * lands in a slab shared by all sockets of a pass; only the start of a frame that is not whole yet is kept,
 * in the connection's inbox, whose memory grows with the bytes received and never with the length announced.
 * Knows neither Python nor sockets: the caller hands in the function that reads.
 *
 * A framing is one function (one for each protocol). Kafka's are here: an int32 length and then that many
 * bytes; and lines of text, which the control socket speaks.
 *
 * The memory of all unfinished frames together is bounded: a large frame grows to half of what the others
 * leave, so that many of them get less each, and something is left for those who come later. */
#ifndef PYKAFKAD_REACTOR_FRAMES_H
#define PYKAFKAD_REACTOR_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  FRAME_START_MAX_BYTES = 32 * 1024,    /* within these a framing must say how long its frame is */
  RECEIVE_CHUNK_BYTES = 64 * 1024,      /* the most one socket puts into a slab in one pass */
  RECEIVE_PASS_BYTES = 256 * 1024,      /* the most one socket puts into its inbox in one pass */
  SLAB_BYTES = 8 * RECEIVE_CHUNK_BYTES, /* chunks lie packed, so small requests share few cache lines */
  EVENTS_PER_PASS = 64,
  READY_PER_PASS =
      16, /* connections whose transport holds bytes; they are received from besides the events */
  /* enough for as many full chunks: an event that is reported but not served starves its socket */
  SLABS_MAX = (EVENTS_PER_PASS + READY_PER_PASS) / 7 + 2,
};

enum frame_status { FRAME_WHOLE, FRAME_PARTIAL, FRAME_NEGATIVE, FRAME_TOO_LARGE, FRAME_REFUSED };

/* WHOLE: the frame's body is bytes[start..end), and the next frame begins at `end`. PARTIAL: nothing more can
 * be said before there are `end` bytes; 0: before there are more. NEGATIVE, TOO_LARGE: `end` is the length
 * that was announced. REFUSED: `why` is a text for the log. */
struct frame_view {
  uint32_t start, end;
  bool appends; /* WHOLE: another such frame may follow it in the same pass, as a Produce follows a Produce */
  const char *why;
};

/* Looks for one frame at the start of bytes[0..size). Bytes looked at in vain are looked at again. */
typedef enum frame_status (*framing)(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                                     struct frame_view *view);

enum frame_status kafka_request(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                                struct frame_view *view);
enum frame_status kafka_answer(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                               struct frame_view *view);
/* A frame is a line with its end. */
enum frame_status text_line(const uint8_t *bytes, size_t size, uint32_t max_frame_bytes,
                            struct frame_view *view);

/* What all inboxes together hold, and the large frames that came out of them until somebody frees those,
 * which may be another thread. */
struct frame_memory {
  int64_t most;
  int64_t used;
};

int64_t frame_memory_used(const struct frame_memory *memory);
void frame_memory_give_back(struct frame_memory *memory, int64_t size);

struct inbox {
  uint8_t *bytes; /* NULL while there is no started frame */
  uint32_t have, capacity;
  uint32_t wanted; /* the whole frame, as far as its framing can tell; 0: that is not known yet */
  bool favoured; /* grows whatever the others hold, and does not count: at most one, for there to be progress
                  */
  struct frame_memory *memory; /* NULL: no bound */
};

/* The start of a frame; 0, or -1: no memory. */
int inbox_keep(struct inbox *inbox, const uint8_t *bytes, uint32_t size, uint32_t wanted);
void inbox_clear(struct inbox *inbox);
uint8_t *
inbox_take(struct inbox *inbox); /* the whole frame, whose memory is the caller's to free and give back */
bool inbox_has_room(const struct inbox *inbox); /* a large frame may go on */
void inbox_favour(struct inbox *inbox);

struct slabs {
  uint8_t *bytes[SLABS_MAX];
  uint32_t used[SLABS_MAX];
  uint32_t current;
};

enum receive_status {
  RECEIVED_NOTHING,
  RECEIVED_CHUNK,
  RECEIVED_FRAME,
  RECEIVED_NO_ROOM,
  RECEIVED_END,
  RECEIVED_ERROR,
  RECEIVED_ATTENDED
};

/* CHUNK: bytes [start, end) of slab number `slab`. FRAME: the inbox holds exactly one whole frame. NO_ROOM: a
 * large frame would take more memory than the others leave. ATTENDED: the event was for the transport alone.
 */
struct receipt {
  enum receive_status status;
  int error;
  uint32_t slab, start, end;
  uint32_t received;
};

/* Returns bytes read, 0 at the end of the stream, or -1 with errno set, as recv does. */
typedef ssize_t (*read_function)(void *source, void *room, size_t size);

void receive(struct inbox *inbox, struct slabs *slabs, read_function read, void *source,
             struct receipt *receipt);

#endif
