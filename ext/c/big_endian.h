/* Kafka's integers, which are big-endian on the wire and on disk, at any address. */
#ifndef PYKAFKAD_BIG_ENDIAN_H
#define PYKAFKAD_BIG_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define SWAP_16(value) (value)
#define SWAP_32(value) (value)
#define SWAP_64(value) (value)
#else
#define SWAP_16(value) __builtin_bswap16(value)
#define SWAP_32(value) __builtin_bswap32(value)
#define SWAP_64(value) __builtin_bswap64(value)
#endif

static inline uint16_t load_16(const uint8_t *at) {
  uint16_t raw;
  memcpy(&raw, at, sizeof raw);
  return SWAP_16(raw);
}

static inline uint32_t load_32(const uint8_t *at) {
  uint32_t raw;
  memcpy(&raw, at, sizeof raw);
  return SWAP_32(raw);
}

static inline uint64_t load_64(const uint8_t *at) {
  uint64_t raw;
  memcpy(&raw, at, sizeof raw);
  return SWAP_64(raw);
}

static inline void store_16(uint8_t *at, uint16_t value) {
  uint16_t raw = SWAP_16(value);
  memcpy(at, &raw, sizeof raw);
}

static inline void store_32(uint8_t *at, uint32_t value) {
  uint32_t raw = SWAP_32(value);
  memcpy(at, &raw, sizeof raw);
}

static inline void store_64(uint8_t *at, uint64_t value) {
  uint64_t raw = SWAP_64(value);
  memcpy(at, &raw, sizeof raw);
}

#endif
