#include "reactor_wait.h"
#include "reactor_socket.h"

#include <errno.h>
#include <sched.h>

static void gain(struct patience *patience) {
  if (patience->credit < CREDIT_MAX)
    patience->credit++;
}

static void lose(struct patience *patience) {
  patience->credit = patience->credit > CREDIT_LOST ? patience->credit - CREDIT_LOST : 0;
}

/* So long was it kept off its core. */
static void kept_off(struct patience *patience, int64_t us) {
  if (us >= SLICE_US)
    patience->credit = -CREDIT_OF_OTHERS;
  else
    lose(patience);
}

/* The favourite's event and receipt, if it has spoken. */
static bool hear_favourite(const struct patience *patience, struct epoll_event *event, struct slabs *slabs,
                           struct receipt *receipt) {
  struct peer *peer = patience->favourite;
  if (!peer || !peer->reading)
    return false;
  receive(&peer->inbox, slabs, peer->transport->receive, peer, receipt);
  *event = (struct epoll_event){.events = EPOLLIN, .data.ptr = peer};
  return receipt->status != RECEIVED_NOTHING;
}

void attend(struct peer *peer, struct receipt *receipt) {
  *receipt = (struct receipt){.status = RECEIVED_ATTENDED};
  if (peer->transport->attend(peer) < 0) {
    receipt->status = RECEIVED_ERROR;
    receipt->error = errno;
  }
}

int wait_for_events(struct patience *patience, int epoll, struct epoll_event *events, int timeout_ms,
                    struct slabs *slabs, struct receipt *receipt) {
  patience->heard = false;
  int64_t began = timeout_ms == 0 ? 0 : monotonic_us();
  int count = epoll_wait(epoll, events, EVENTS_PER_PASS, patience->credit <= 0 ? timeout_ms : 0);
  if (timeout_ms == 0)
    return count;
  int64_t last = began;
  for (unsigned turn = 1; patience->credit > 0 && count == 0; turn++) {
    int64_t now = monotonic_us();
    if (now - last >= TAKEN_US) {
      kept_off(patience, now - last);
      return epoll_wait(epoll, events, EVENTS_PER_PASS, timeout_ms);
    }
    last = now;
    if (now - began >= SPIN_US) {
      lose(patience);
      return epoll_wait(epoll, events, EVENTS_PER_PASS, timeout_ms);
    }
    patience->heard = hear_favourite(patience, events, slabs, receipt);
    if (patience->heard) {
      count = 1;
    } else if (!patience->favourite || turn % ASK_EVERY == 0) {
      sched_yield();
      count = epoll_wait(epoll, events, EVENTS_PER_PASS, 0);
    }
  }
  if (count > 0 && monotonic_us() - began < SHORT_SLEEP_US)
    gain(patience);
  return count;
}
