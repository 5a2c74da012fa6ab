/* Waiting for events: asking again for a moment before going to sleep, where that pays.
 *
 * A core that sleeps takes tens of microseconds to wake, several times what a small request costs. So after a
 * pass the loop asks again for up to SPIN_US, giving the core away to whoever wants it in between, but only
 * while experience says that something comes that soon: `credit` grows with each wait that was short and
 * falls with each spin that was in vain, so that an idle or slow broker just sleeps.
 */
#ifndef PYKAFKAD_REACTOR_WAIT_H
#define PYKAFKAD_REACTOR_WAIT_H

#include <sys/epoll.h>

enum {
  SPIN_US = 100,
  SHORT_SLEEP_US = 2 * SPIN_US, /* a sleep this short, waking included, would have been met by a spin */
  CREDIT_MAX = 64,
  CREDIT_LOST = 8, /* by a spin in vain: what comes too late three times of four is not waited for */
};

struct patience {
  int credit;
};

/* epoll_wait, but that it may spin first. */
int wait_for_events(struct patience *patience, int epoll, struct epoll_event *events, int room,
                    int timeout_ms);

#endif
