/* CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected), the checksum of record batches.
 *
 * crc32c() runs the fastest implementation this machine has, chosen once when the library is loaded.
 * It chains: crc32c(crc32c(0, a), b) is the checksum of a followed by b.
 */
#ifndef PYKAFKAD_CRC32C_H
#define PYKAFKAD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t seed, const uint8_t *data, size_t size);

/* The implementations by number, for tests: 0 is the portable one. crc32c_path_name is NULL past the last
 * one. */
const char *crc32c_path_name(int path);
int crc32c_path_available(int path);
uint32_t crc32c_by_path(int path, uint32_t seed, const uint8_t *data, size_t size);
int crc32c_path_chosen(void);

#endif
