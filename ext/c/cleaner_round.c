/* See cleaner_round.h. */
#include "cleaner_round.h"

#include <math.h>
#include <time.h>

#define NS_PER_SECOND 1000000000
#define NAP_NS 50000000 /* how long it may take until a cancelled round or another rate is noticed */
#define LONGEST_NS (3600.0 * NS_PER_SECOND)

void throttle_begin(cleaner_throttle *throttle, double bytes_per_second) {
  pthread_mutex_init(&throttle->lock, NULL);
  throttle->bytes_per_second = bytes_per_second;
  throttle->paid_until_ns = 0;
  throttle->generation = 0;
}

void throttle_set(cleaner_throttle *throttle, double bytes_per_second) {
  pthread_mutex_lock(&throttle->lock);
  throttle->bytes_per_second = bytes_per_second;
  throttle->paid_until_ns = 0;
  throttle->generation++;
  pthread_mutex_unlock(&throttle->lock);
}

static int64_t take(cleaner_throttle *throttle, int64_t size, int64_t now_ns, uint32_t *generation) {
  int64_t wait = 0;
  pthread_mutex_lock(&throttle->lock);
  *generation = throttle->generation;
  if (isfinite(throttle->bytes_per_second)) {
    double rate = throttle->bytes_per_second; /* of less than nothing Kafka does not wait either */
    double cost = size > 0 && rate >= 0 ? (double)size * NS_PER_SECOND / rate : 0;
    int64_t due = throttle->paid_until_ns > now_ns ? throttle->paid_until_ns : now_ns;
    throttle->paid_until_ns = due + (int64_t)(cost < LONGEST_NS ? cost : LONGEST_NS);
    wait = due - now_ns;
  }
  pthread_mutex_unlock(&throttle->lock);
  return wait;
}

int64_t throttle_take(cleaner_throttle *throttle, int64_t size, int64_t now_ns) {
  uint32_t generation;
  return take(throttle, size, now_ns, &generation);
}

static int is_current(cleaner_throttle *throttle, uint32_t generation) {
  pthread_mutex_lock(&throttle->lock);
  int current = throttle->generation == generation;
  pthread_mutex_unlock(&throttle->lock);
  return current;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

void round_cancel(cleaner_round *round) { atomic_store(&round->cancelled, 1); }

int round_cancelled(cleaner_round *round) { return atomic_load(&round->cancelled); }

int round_pay(cleaner_round *round, int64_t size) {
  uint32_t generation;
  int64_t left = round->throttle ? take(round->throttle, size, now(), &generation) : 0;
  while (left > 0 && !round_cancelled(round) && is_current(round->throttle, generation)) {
    struct timespec nap = {.tv_nsec = left < NAP_NS ? left : NAP_NS};
    int64_t before = now();
    nanosleep(&nap, NULL);
    left -= now() - before;
  }
  return round_cancelled(round);
}

void round_note_buffers(cleaner_round *round, size_t size) {
  if ((int64_t)size > round->largest_buffer_bytes)
    round->largest_buffer_bytes = (int64_t)size;
}
