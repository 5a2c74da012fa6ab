/* How the bytes of a connection travel: a table of functions, one table for each way (plain; TLS). The loop
 * calls nothing else for it, and calls these without Python's lock.
 *
 * A transport may need the socket for itself, whatever the connection waits for, and may hold bytes: some
 * that came and were not yet taken, others that were taken and have not yet left. It says so in its peer:
 *
 * `wants` has EPOLLIN and EPOLLOUT, as the transport needs them for itself: when one of these comes, attend()
 * is called, and nothing else. They must cease when attend() has used them.
 *
 * `bars` has EPOLLIN while receive() has nothing before attend() was called, and EPOLLOUT while send() takes
 * nothing before the transport has received something; during a handshake it has both. It needs `wants`, or
 * that somebody receives.
 *
 * `ready` is true when receive() would give bytes, or the end, that the socket does not announce.
 *
 * What it holds must have a bound. It may be in the middle of anything when close() comes. */
#ifndef PYKAFKAD_REACTOR_TRANSPORT_H
#define PYKAFKAD_REACTOR_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct peer;

struct transport {
  /* Sets peer->session, in which it keeps what it knows of this connection. 0, or -1 with errno. NULL: it
   * keeps nothing, and none of the functions from `attend` on is called. */
  int (*open)(const struct transport *transport, struct peer *peer);
  /* Given the peer. As recv: bytes, 0 at the end of the stream, -1 with errno; EAGAIN: nothing now. */
  ssize_t (*receive)(void *peer, void *room, size_t size);
  /* As sendmsg: the bytes that it took. Fewer than it was given: it takes more when the socket can be written
   * to, unless it bars that. `more`: others follow at once. */
  ssize_t (*send)(struct peer *peer, const struct iovec *parts, uint32_t count, bool more);
  /* As sendfile: the bytes that it took, 0 where the file has no more. NULL: the range is read, and sent. */
  ssize_t (*send_range)(struct peer *peer, int file, int64_t offset, size_t size);
  /* Goes on with what it wanted the socket for. 0, or -1 with errno: the connection has failed. */
  int (*attend)(struct peer *peer);
  /* The connection ends in order: says so to the other side, once. True: nothing of its own is left to send,
   * or it cannot be sent; false: it wants to write. Also called, for what it is worth, where the end is no
   * orderly one. */
  bool (*finish)(struct peer *peer);
  void (*close)(struct peer *peer); /* frees peer->session; the socket is closed by the caller */
  const char *(*trouble)(const struct peer *peer); /* why it failed, for the log; NULL: errno says it */
};

extern const struct transport plain_transport;

#endif
