/* The few lines about sockets, addresses and clocks, and the memory that (in tests) stands for a socket. */
#ifndef PYKAFKAD_REACTOR_SOCKET_H
#define PYKAFKAD_REACTOR_SOCKET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct memory_source {
  const uint8_t *bytes;
  size_t left;
};

static inline ssize_t read_memory(void *source, void *room, size_t size) {
  struct memory_source *memory = source;
  if (!memory->left) {
    errno = EAGAIN;
    return -1;
  }
  if (size > memory->left)
    size = memory->left;
  memcpy(room, memory->bytes, size);
  memory->bytes += size;
  memory->left -= size;
  return (ssize_t)size;
}

/* The text of an IPv4 or IPv6 address (an IPv4 one mapped into IPv6 as IPv4, as Java shows it) and its port;
 * an empty text for other kinds of sockets. */
static inline int address_text(const struct sockaddr_in6 *address, char text[INET6_ADDRSTRLEN]) {
  text[0] = 0;
  if (address->sin6_family == AF_INET) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    inet_ntop(AF_INET, &four->sin_addr, text, INET6_ADDRSTRLEN);
    return ntohs(four->sin_port);
  }
  if (address->sin6_family != AF_INET6)
    return 0;
  if (IN6_IS_ADDR_V4MAPPED(&address->sin6_addr))
    inet_ntop(AF_INET, &address->sin6_addr.s6_addr[12], text, INET6_ADDRSTRLEN);
  else
    inet_ntop(AF_INET6, &address->sin6_addr, text, INET6_ADDRSTRLEN);
  return ntohs(address->sin6_port);
}

static inline void peer_address(int fd, struct sockaddr_in6 *address) {
  socklen_t size = sizeof *address;
  if (getpeername(fd, (struct sockaddr *)address, &size) < 0)
    address->sin6_family = AF_UNSPEC;
}

static inline int64_t monotonic_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* What this thread has used of a core. A system call, unlike the clock above. */
static inline int64_t thread_cpu_us(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * INT64_C(1000000) + used.tv_nsec / 1000;
}

#endif
