/* Waiting for events: asking again for a moment before going to sleep, where that pays.
 *
 * A core that sleeps takes tens of microseconds to wake, several times what a small request costs. So after a
 * pass the loop asks again for up to SPIN_US, giving the core away to whoever wants it in between, but only
 * while experience says that something comes that soon: `credit` grows with each wait that was short and
 * falls with each spin that was in vain, so that an idle or slow broker just sleeps.
 *
 * Where others want the core it is theirs: who spins takes it from whoever is to bring what it waits for,
 * such as the other brokers of a cluster on the same machine, and has used up its own share when that comes.
 *
 * A client that waits for each answer is mostly alone, and the next to speak. So while it spins, the loop
 * receives from the peer that was alone in the last pass, the favourite, without asking epoll first, which
 * costs as much as receiving. Nobody waits for that: epoll is asked before, and at every ASK_EVERY-th turn.
 */
#ifndef PYKAFKAD_REACTOR_WAIT_H
#define PYKAFKAD_REACTOR_WAIT_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "reactor_frames.h"
#include "reactor_send.h"

enum {
  SPIN_US = 100,
  SHORT_SLEEP_US = 2 * SPIN_US, /* a sleep this short, waking included, would have been met by a spin */
  CREDIT_MAX = 64,
  CREDIT_LOST = 8, /* by a spin in vain: what comes too late three times of four is not waited for */
  ASK_EVERY = 8,
  TAKEN_US = 10,  /* between two looks at the clock: somebody else had the core, and gets it, too */
  SLICE_US = 500, /* and works for long: more want cores than there are, and will for a while */
  CREDIT_OF_OTHERS = 2000,
};

struct patience {
  int credit;
  struct peer *favourite; /* NULL: none; whoever closes it clears this */
  bool heard;             /* the event that was waited for is the favourite's, and its receipt is there */
};

/* epoll_wait for up to EVENTS_PER_PASS events, but that it may spin first. */
int wait_for_events(struct patience *patience, int epoll, struct epoll_event *events, int timeout_ms,
                    struct slabs *slabs, struct receipt *receipt);

/* Has the transport use the event that it wanted. */
void attend(struct peer *peer, struct receipt *receipt);

/* What an event of a socket is good for: the transport has its share first. */
static inline void serve_event(struct peer *peer, uint32_t events, struct slabs *slabs,
                               struct receipt *receipt) {
  if (peer->wants && events & (peer->wants | EPOLLERR | EPOLLHUP))
    attend(peer, receipt);
  else if (peer->reading && events & ~(uint32_t)EPOLLOUT)
    receive(&peer->inbox, slabs, peer->transport->receive, peer, receipt);
  else
    *receipt = (struct receipt){.status = RECEIVED_NOTHING};
}

#endif
