/* A bare block of snappy, decompressed in steps.
 *
 * The whole of what it expands to lies in `out`, since what follows may refer to all of it. A block is what
 * its header says or it is not valid: nothing of it may be used before snappy_block_go_on has returned
 * SNAPPY_DONE. Format: https://github.com/google/snappy/blob/main/format_description.txt
 */
#ifndef PYKAFKAD_SNAPPY_BLOCK_H
#define PYKAFKAD_SNAPPY_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum snappy_status { SNAPPY_GOES_ON, SNAPPY_DONE, SNAPPY_INVALID };

struct snappy_block {
  const uint8_t *at, *end; /* what is not read yet */
  uint8_t *out;
  size_t made, size;   /* bytes of out: so far, and when it is done */
  size_t literal_left; /* of a literal that the last step did not copy to its end */
};

/* `data` begins behind the header, which says `size`. */
void snappy_block_begin(struct snappy_block *block, const uint8_t *data, size_t length, uint8_t *out,
                        size_t size);

/* Makes at least `step` more bytes, if so many are to come, and not much more. */
enum snappy_status snappy_block_go_on(struct snappy_block *block, size_t step);

#endif
