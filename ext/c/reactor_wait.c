#include "reactor_wait.h"
#include "reactor_socket.h"

#include <sched.h>

static void gain(struct patience *patience) {
  if (patience->credit < CREDIT_MAX)
    patience->credit++;
}

static void lose(struct patience *patience) {
  patience->credit = patience->credit > CREDIT_LOST ? patience->credit - CREDIT_LOST : 0;
}

int wait_for_events(struct patience *patience, int epoll, struct epoll_event *events, int room,
                    int timeout_ms) {
  if (timeout_ms == 0)
    return epoll_wait(epoll, events, room, 0);
  int64_t began = monotonic_us();
  if (patience->credit > 0) {
    do {
      int count = epoll_wait(epoll, events, room, 0);
      if (count != 0) {
        gain(patience);
        return count;
      }
      sched_yield();
    } while (monotonic_us() - began < SPIN_US);
    lose(patience);
    return epoll_wait(epoll, events, room, timeout_ms);
  }
  int count = epoll_wait(epoll, events, room, timeout_ms);
  if (count > 0 && monotonic_us() - began < SHORT_SLEEP_US)
    gain(patience);
  return count;
}
