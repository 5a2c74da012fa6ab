/* A binary heap of timers, each knowing its place, so that a cancelled one leaves at once. Equal deadlines
 * keep the order in which they were added. */
#ifndef PYKAFKAD_REACTOR_TIMERS_H
#define PYKAFKAD_REACTOR_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct timer {
  int64_t deadline_us;
  uint64_t sequence;
  size_t place; /* 1-based; 0: not in the heap */
  void *owner;
};

struct timers {
  struct timer **items;
  size_t count, capacity;
  uint64_t next_sequence;
};

int timers_add(struct timers *timers, struct timer *timer); /* 0, or -1: no memory */
void timers_remove(struct timers *timers, struct timer *timer);

#endif
