#include "reactor_timers.h"

#include <stdbool.h>
#include <stdlib.h>

static bool earlier(const struct timer *a, const struct timer *b) {
  return a->deadline_us != b->deadline_us ? a->deadline_us < b->deadline_us : a->sequence < b->sequence;
}

static void put(struct timers *timers, size_t index, struct timer *timer) {
  timers->items[index] = timer;
  timer->place = index + 1;
}

static void rise(struct timers *timers, size_t index, struct timer *timer) {
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (!earlier(timer, timers->items[parent]))
      break;
    put(timers, index, timers->items[parent]);
    index = parent;
  }
  put(timers, index, timer);
}

static void sink(struct timers *timers, size_t index, struct timer *timer) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= timers->count)
      break;
    if (child + 1 < timers->count && earlier(timers->items[child + 1], timers->items[child]))
      child++;
    if (!earlier(timers->items[child], timer))
      break;
    put(timers, index, timers->items[child]);
    index = child;
  }
  put(timers, index, timer);
}

int timers_add(struct timers *timers, struct timer *timer) {
  if (timers->count == timers->capacity) {
    size_t capacity = timers->capacity ? 2 * timers->capacity : 64;
    struct timer **items = realloc(timers->items, capacity * sizeof *items);
    if (!items)
      return -1;
    timers->items = items;
    timers->capacity = capacity;
  }
  timer->sequence = timers->next_sequence++;
  rise(timers, timers->count++, timer);
  return 0;
}

void timers_remove(struct timers *timers, struct timer *timer) {
  size_t index = timer->place - 1;
  timer->place = 0;
  struct timer *last = timers->items[--timers->count];
  if (last == timer)
    return;
  if (index > 0 && earlier(last, timers->items[(index - 1) / 2]))
    rise(timers, index, last);
  else
    sink(timers, index, last);
}
