#include "reactor_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int out_push(struct out_queue *queue, struct out_part part) {
  if (queue->end == queue->capacity) {
    uint32_t capacity = queue->capacity ? 2 * queue->capacity : 4;
    struct out_part *parts = realloc(queue->parts, capacity * sizeof *parts);
    if (!parts)
      return -1;
    queue->parts = parts;
    queue->capacity = capacity;
  }
  part.last = false;
  queue->parts[queue->end++] = part;
  if (part.bytes)
    queue->bytes += part.left;
  return 0;
}

void out_answer_ends(struct out_queue *queue) {
  queue->parts[queue->end - 1].last = true;
  queue->answers++;
}

void out_forget(struct out_queue *queue) {
  enum { FORGET_PARTS = 64 };
  queue->done = queue->head;
  if (queue->head == queue->end) {
    out_free(queue);
  } else if (queue->done >= FORGET_PARTS && queue->done >= queue->end / 2) {
    queue->end -= queue->done;
    memmove(queue->parts, queue->parts + queue->done, queue->end * sizeof *queue->parts);
    queue->done = queue->head = 0;
  }
}

void out_free(struct out_queue *queue) {
  free(queue->parts);
  *queue = (struct out_queue){0};
}

/* A part that has nothing left (an empty one, too) is passed over here, so the head always has bytes. */
static void advance(struct peer *peer, int64_t sent) {
  struct out_queue *queue = &peer->out;
  while (queue->head < queue->end) {
    struct out_part *part = &queue->parts[queue->head];
    int64_t taken = part->left < sent ? part->left : sent;
    part->left -= taken;
    sent -= taken;
    if (part->bytes) {
      part->bytes += taken;
      queue->bytes -= taken;
    } else {
      part->offset += taken;
    }
    if (part->left)
      return;
    queue->answers -= part->last;
    queue->head++;
    peer->warm_to = 0;
  }
}

struct gathered {
  struct iovec vectors[GATHER_PARTS];
  uint32_t count;
  uint32_t copied; /* bytes of the room taken */
  int64_t total;
  bool more; /* parts wait behind these: the kernel may hold a last small segment back for them */
};

static void add_vector(struct gathered *gathered, const uint8_t *bytes, int64_t size) {
  struct iovec *last = gathered->count ? &gathered->vectors[gathered->count - 1] : NULL;
  if (last && (uint8_t *)last->iov_base + last->iov_len == bytes)
    last->iov_len += (size_t)size;
  else
    gathered->vectors[gathered->count++] = (struct iovec){(void *)bytes, (size_t)size};
  gathered->total += size;
}

/* Reads without waiting for a disk, where the kernel can do that and no thread has read it just before: then
 * what is still missing is not in the file. OUT_MORE: it is all there. */
static enum out_status read_range(const struct out_part *part, int64_t warm_to, struct out_room *room,
                                  uint8_t *bytes) {
  struct iovec vector = {bytes, (size_t)part->left};
  ssize_t got;
  if (!room->no_nowait && part->offset >= warm_to) {
    got = preadv2(part->fd, &vector, 1, part->offset, RWF_NOWAIT);
    if (got == part->left)
      return OUT_MORE;
    if (got >= 0 || errno == EAGAIN)
      return OUT_COLD;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
      room->no_nowait = true;
  }
  do
    got = pread(part->fd, bytes, (size_t)part->left, part->offset);
  while (got < 0 && errno == EINTR);
  return got == part->left ? OUT_MORE : got < 0 ? OUT_FAILED : OUT_FILE_SHORT;
}

/* Whether sending it would wait for a disk; a guess from a page here and there, as pages come and go in rows.
 */
static bool is_cold(const struct out_part *part, int64_t size, int64_t warm_to, struct out_room *room) {
  int64_t end = part->offset + size;
  for (int64_t at = part->offset; !room->no_nowait && at < end; at += PROBE_STEP_BYTES) {
    uint8_t byte;
    struct iovec vector = {&byte, 1};
    if (at < warm_to)
      continue;
    ssize_t got = preadv2(part->fd, &vector, 1, at, RWF_NOWAIT);
    if (got < 0 && errno == EAGAIN)
      return true;
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
      room->no_nowait = true;
  }
  return false;
}

void warm_range(int fd, int64_t offset, int64_t size) {
  static __thread uint8_t bytes[64 * 1024];
  while (size > 0) {
    ssize_t got = pread(fd, bytes, size < (int64_t)sizeof bytes ? (size_t)size : sizeof bytes, offset);
    if (got <= 0)
      return; /* the send that follows meets the same, and says so */
    offset += got;
    size -= got;
  }
}

static bool is_large_range(const struct out_part *part) {
  return !part->bytes && part->left > GATHER_RANGE_BYTES;
}

/* Collects parts from the head on. OUT_MORE: something is there to send. */
static enum out_status gather(struct peer *peer, struct out_room *room, int64_t budget,
                              struct gathered *gathered) {
  struct out_queue *queue = &peer->out;
  uint32_t i = queue->head;
  for (; i < queue->end && gathered->count < GATHER_PARTS; i++) {
    const struct out_part *part = &queue->parts[i];
    if (gathered->total >= budget || is_large_range(part))
      break;
    int64_t copy_room = GATHER_BYTES - gathered->copied;
    uint8_t *copy = room->bytes + gathered->copied;
    if (part->bytes && (part->left > GATHER_COPY_BYTES || part->left > copy_room)) {
      int64_t allowed = budget - gathered->total;
      add_vector(gathered, part->bytes, part->left < allowed ? part->left : allowed);
      continue;
    }
    if (part->left > copy_room)
      break;
    if (part->bytes) {
      memcpy(copy, part->bytes, (size_t)part->left);
    } else {
      enum out_status status = read_range(part, i == queue->head ? peer->warm_to : 0, room, copy);
      if (status != OUT_MORE) {
        if (gathered->total) /* what stands before it leaves first; then it is met again, at the head */
          break;
        return status;
      }
    }
    gathered->copied += (uint32_t)part->left;
    add_vector(gathered, copy, part->left);
  }
  gathered->more = i < queue->end;
  return OUT_MORE;
}

/* Both senders give OUT_MORE after a whole success, and OUT_BLOCKED where the socket took less than it was
 * given. */
static enum out_status sent_some(struct peer *peer, ssize_t sent, int64_t asked, int64_t *budget) {
  if (sent < 0) {
    if (errno == EINTR)
      return OUT_MORE;
    peer->error = errno;
    return errno == EAGAIN || errno == EWOULDBLOCK ? OUT_BLOCKED : OUT_FAILED;
  }
  advance(peer, sent);
  *budget -= sent;
  return sent < asked ? OUT_BLOCKED : OUT_MORE;
}

static enum out_status send_gathered(struct peer *peer, struct out_room *room, int64_t *budget) {
  struct gathered gathered;
  gathered.count = gathered.copied = 0;
  gathered.total = 0;
  enum out_status status = gather(peer, room, *budget, &gathered);
  if (status != OUT_MORE) {
    peer->error = errno;
    return status;
  }
  ssize_t sent = peer->transport->send(peer, gathered.vectors, gathered.count, gathered.more);
  return sent_some(peer, sent, gathered.total, budget);
}

/* For transports that must see the bytes. */
static ssize_t send_range_by_reading(struct peer *peer, const struct out_part *part, int64_t size,
                                     struct out_room *room) {
  int64_t sent = 0;
  while (sent < size) {
    size_t wanted = size - sent < GATHER_BYTES ? (size_t)(size - sent) : GATHER_BYTES;
    ssize_t got;
    do
      got = pread(part->fd, room->bytes, wanted, part->offset + sent);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
      return sent ? sent : got; /* the next send meets it again, and says so */
    struct iovec piece = {room->bytes, (size_t)got};
    ssize_t taken = peer->transport->send(peer, &piece, 1, sent + got < part->left);
    if (taken < 0)
      return sent ? sent : taken;
    sent += taken;
    if (taken < got)
      break;
  }
  return sent;
}

static enum out_status send_file(struct peer *peer, struct out_room *room, int64_t *budget) {
  const struct out_part *part = &peer->out.parts[peer->out.head];
  int64_t size = part->left < *budget ? part->left : *budget;
  if (is_cold(part, size, peer->warm_to, room))
    return OUT_COLD;
  ssize_t sent = peer->transport->send_range
                     ? peer->transport->send_range(peer, part->fd, part->offset, (size_t)size)
                     : send_range_by_reading(peer, part, size, room);
  if (sent == 0)
    return OUT_FILE_SHORT;
  return sent_some(peer, sent, size, budget);
}

void out_pump(struct peer *peer, struct out_room *room, int64_t *budget, bool files) {
  struct out_queue *queue = &peer->out;
  enum out_status status = OUT_MORE;
  advance(peer, 0);
  while (status == OUT_MORE && queue->head < queue->end && *budget > 0) {
    if (!is_large_range(&queue->parts[queue->head]))
      status = send_gathered(peer, room, budget);
    else if (files)
      status = send_file(peer, room, budget);
    else
      break;
  }
  peer->status = queue->head == queue->end ? OUT_EMPTY : status;
}

void write_queue_add(struct write_queue *queue, struct peer *peer) {
  peer->queued = true;
  peer->next = NULL;
  peer->previous = queue->last;
  if (queue->last)
    queue->last->next = peer;
  else
    queue->first = peer;
  queue->last = peer;
}

void write_queue_remove(struct write_queue *queue, struct peer *peer) {
  *(peer->previous ? &peer->previous->next : &queue->first) = peer->next;
  *(peer->next ? &peer->next->previous : &queue->last) = peer->previous;
  peer->previous = peer->next = NULL;
  peer->queued = false;
}

uint32_t write_queue_pump(struct write_queue *queue, struct out_room *room, int64_t *budget,
                          struct peer **touched, uint32_t touched_max) {
  uint32_t count = 0;
  while (queue->first && *budget > 0 && count < touched_max) {
    struct peer *peer = queue->first;
    out_pump(peer, room, budget, true);
    touched[count++] = peer;
    if (peer->status == OUT_MORE)
      break;
    write_queue_remove(queue, peer);
  }
  return count;
}
