/* What the passes of a cleaning share: the throttle, the wish to stop, the counts. Knows no Python.
 *
 * The throttle keeps one time for all threads: when the bytes taken so far are paid for. Whoever takes bytes
 * moves it on by what they cost and waits until it was due. Time that nobody used is not saved up.
 */
#ifndef PYKAFKAD_CLEANER_ROUND_H
#define PYKAFKAD_CLEANER_ROUND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  pthread_mutex_t lock;
  double bytes_per_second; /* infinity: no limit */
  int64_t paid_until_ns;
  uint32_t generation; /* of the rate: who waits for an older one stops waiting */
} cleaner_throttle;

void throttle_begin(cleaner_throttle *throttle, double bytes_per_second);
void throttle_set(cleaner_throttle *throttle, double bytes_per_second);

/* How long the caller has to wait before it takes `size` bytes; they count as taken. */
int64_t throttle_take(cleaner_throttle *throttle, int64_t size, int64_t now_ns);

typedef struct {
  cleaner_throttle *throttle; /* NULL: no limit */
  _Atomic int cancelled;
  int64_t bytes_read, messages_read, bytes_written, messages_written;
  int64_t invalid_messages, batches_emptied, index_bytes_read, index_messages_read;
  int64_t largest_buffer_bytes;
} cleaner_round;

void round_cancel(cleaner_round *round);
int round_cancelled(cleaner_round *round);

/* Waits as the throttle says; 0, or not when the round was cancelled. */
int round_pay(cleaner_round *round, int64_t size);

/* These buffers are in use at once. */
void round_note_buffers(cleaner_round *round, size_t size);

#endif
