/* See wire_text.h. */
#include "wire_text.h"

#include <string.h>

static int is_next(uint8_t byte, uint8_t least, uint8_t most) { return byte >= least && byte <= most; }

/* How many bytes belong together at `at`, and whether they are a character. */
static size_t take(const uint8_t *at, const uint8_t *end, int *good) {
  uint8_t first = *at, least = 0x80, most = 0xbf;
  size_t wanted = first < 0x80   ? 1
                  : first < 0xc2 ? 0
                  : first < 0xe0 ? 2
                  : first < 0xf0 ? 3
                  : first < 0xf5 ? 4
                                 : 0;
  *good = 0;
  if (wanted == 0)
    return 1;
  if (first == 0xe0)
    least = 0xa0;
  else if (first == 0xf0)
    least = 0x90;
  else if (first == 0xf4)
    most = 0x8f;
  size_t taken = 1;
  for (; taken < wanted; taken++, least = 0x80, most = 0xbf)
    if (at + taken == end || !is_next(at[taken], least, most))
      return taken;
  *good = first != 0xed || at[1] < 0xa0; /* else a surrogate */
  return taken;
}

size_t wire_mend_text(const uint8_t *data, size_t size, uint8_t *out) {
  static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};
  const uint8_t *end = data + size;
  uint8_t *to = out;
  while (data < end) {
    int good;
    size_t taken = take(data, end, &good);
    memcpy(to, good ? data : replacement, good ? taken : sizeof replacement);
    to += good ? taken : sizeof replacement;
    data += taken;
  }
  return (size_t)(to - out);
}
