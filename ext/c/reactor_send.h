/* What waits to leave on one socket, and the queue of sockets that have more to send than one pass allows.
 *
 * An answer is a row of parts: bytes in memory, or ranges of files. Bytes and small file ranges leave
 * gathered in one send; larger ranges by the transport's send_range, first in first out over all sockets,
 * with a budget of bytes a pass, so that a reader of much never stands between a small request and its
 * answer. Parts that left are only counted here: their owners are Python's, and the caller lets them go. */
#ifndef PYKAFKAD_REACTOR_SEND_H
#define PYKAFKAD_REACTOR_SEND_H

#include "reactor_frames.h"
#include "reactor_transport.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  GATHER_PARTS = 64,        /* vectors in one sendmsg */
  GATHER_BYTES = 64 * 1024, /* bytes of one connection that leave before other connections had their turn */
  GATHER_COPY_BYTES = 512,  /* parts up to this are copied together: cheaper than a vector each */
  GATHER_RANGE_BYTES = 16 * 1024,      /* file ranges up to this are read into the gathered send */
  WRITE_QUEUE_PASS_BYTES = 128 * 1024, /* all that the write queue sends in one pass */
  PROBE_STEP_BYTES = 64 * 1024,        /* how closely a range is looked at for pages that are not in memory */
  KEEP_GIL_BYTES = 4096,    /* of one small answer, which is sent without giving the interpreter away */
  WARM_BYTES = 1024 * 1024, /* what a thread reads of a range that is not in memory, before it goes on */
};

struct out_part {
  void *owner;          /* keeps bytes or file alive */
  const uint8_t *bytes; /* NULL: a range of a file */
  int64_t offset;       /* in the file */
  int64_t left;
  int fd;
  bool last; /* of its answer; set by out_answer_ends */
};

/* parts[done..head) have left, parts[head..end) wait. */
struct out_queue {
  struct out_part *parts;
  uint32_t done, head, end, capacity;
  uint32_t answers; /* not wholly gone */
  int64_t bytes;    /* waiting in memory; file ranges take none */
};

int out_push(struct out_queue *queue, struct out_part part); /* 0, or -1: no memory */
void out_answer_ends(struct out_queue *queue);               /* after the last part of an answer */
void out_forget(struct out_queue *queue);                    /* the owners of parts[done..head) were let go */
void out_free(struct out_queue *queue);

enum out_status { OUT_EMPTY, OUT_MORE, OUT_BLOCKED, OUT_FAILED, OUT_FILE_SHORT, OUT_COLD };

struct peer {
  int fd; /* -1: closed */
  uint32_t interest;
  void *owner;
  const struct transport *transport;
  void *session;        /* the transport's, of this connection; NULL: it needs none, or it is closed */
  uint32_t wants, bars; /* these three are the transport's to set: see reactor_transport.h */
  bool ready;
  struct inbox inbox;
  struct out_queue out;
  enum out_status status;
  int error;
  bool reading;         /* may be received from */
  bool queued, blocked; /* in the write queue; waiting until the socket takes bytes again */
  bool warming;         /* a thread reads what the head needs into the page cache */
  int64_t warm_to;      /* file offset up to which that was done: no further look is taken there */
  struct peer *previous, *next;
  int64_t active_at_ms;
  struct sockaddr_in6 address; /* or sockaddr_in in the same room */
};

struct write_queue {
  struct peer *first, *last;
};

struct out_room { /* one a reactor */
  uint8_t bytes[GATHER_BYTES];
  bool no_nowait; /* this kernel or file system cannot say whether pages are in memory */
};

/* Sends up to budget bytes and takes them off it; `files`: large ranges too. Sets peer->status and
 * peer->error. */
void out_pump(struct peer *peer, struct out_room *room, int64_t *budget, bool files);

/* Reads a range, waiting for the disk, so that it is in the page cache. For another thread. */
void warm_range(int fd, int64_t offset, int64_t size);

void write_queue_add(struct write_queue *queue, struct peer *peer);
void write_queue_remove(struct write_queue *queue, struct peer *peer);

/* Pumps peers in order until the budget is gone or `touched` is full; gives the number of peers touched. */
uint32_t write_queue_pump(struct write_queue *queue, struct out_room *room, int64_t *budget,
                          struct peer **touched, uint32_t touched_max);

#endif
