/* Malformed UTF-8, as Java reads it.
 *
 * Each longest beginning of a character that does not go on becomes one U+FFFD (as in Python's "replace"),
 * and so does a surrogate, of which Java takes two or three bytes where Python takes them one by one.
 */
#ifndef PYKAFKAD_WIRE_TEXT_H
#define PYKAFKAD_WIRE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_MENDED_MOST 3 /* bytes that one becomes at most */

/* Writes well-formed UTF-8 to `out`, which has room for WIRE_MENDED_MOST times `size`; how many bytes. */
size_t wire_mend_text(const uint8_t *data, size_t size, uint8_t *out);

#endif
