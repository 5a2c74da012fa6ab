/* The plain transport: the socket's own calls. */
#include "reactor_transport.h"
#include "reactor_send.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

static ssize_t plain_receive(void *peer, void *room, size_t size) {
  return recv(((struct peer *)peer)->fd, room, size, 0);
}

static ssize_t plain_send(struct peer *peer, const struct iovec *parts, uint32_t count, bool more) {
  int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  if (count == 1)
    return send(peer->fd, parts->iov_base, parts->iov_len, flags);
  struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
  return sendmsg(peer->fd, &message, flags);
}

static ssize_t plain_send_range(struct peer *peer, int file, int64_t offset, size_t size) {
  off_t from = offset;
  return sendfile(peer->fd, file, &from, size);
}

const struct transport plain_transport = {
    .receive = plain_receive,
    .send = plain_send,
    .send_range = plain_send_range,
};
