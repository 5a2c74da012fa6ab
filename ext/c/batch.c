/* See batch.h. */
#include "batch.h"

#include <string.h>

#include "crc32c.h"

int batch_next(const uint8_t *data, size_t size, int32_t *batch_size, int8_t *magic) {
  if (size < LOG_OVERHEAD)
    return BATCH_END;
  int32_t length = (int32_t)load_32(data + 8);
  if (length < LEGACY_OVERHEAD)
    return BATCH_BAD_SIZE;
  if (size < UP_TO_MAGIC)
    return BATCH_END;
  *magic = (int8_t)data[MAGIC_AT];
  if (*magic < 0 || *magic > 2)
    return BATCH_BAD_MAGIC;
  if (length > INT32_MAX - LOG_OVERHEAD)
    return BATCH_SIZE_OVERFLOW;
  if (size < (size_t)length + LOG_OVERHEAD)
    return BATCH_END;
  *batch_size = length + LOG_OVERHEAD;
  return BATCH_OK;
}

void batch_read_header(const uint8_t *data, int32_t size, batch_header *header) {
  uint8_t padded[BATCH_OVERHEAD];
  const uint8_t *at = data;
  if (size < BATCH_OVERHEAD) {
    memset(padded, 0, sizeof padded);
    memcpy(padded, data, (size_t)size);
    at = padded;
  }
  batch_read_whole_header(at, size, header);
}

static uint32_t compute_crc(const uint8_t *data, int32_t size) {
  return crc32c(0, data + ATTRIBUTES_AT, (size_t)size - ATTRIBUTES_AT);
}

int batch_crc_fits(const uint8_t *data, int32_t size) {
  return size >= BATCH_OVERHEAD && load_32(data + CRC_AT) == compute_crc(data, size);
}

int batch_check_append(const uint8_t *data, const batch_header *header, int32_t max_size, int from_client,
                       int with_crc) {
  if (from_client && header->base_offset != 0)
    return BATCH_BASE_OFFSET;
  if (header->size < 27) /* Kafka reads the last offset here, outside of such a batch */
    return BATCH_HEADER_CUT;
  if (header->size > max_size)
    return BATCH_TOO_LARGE;
  if (with_crc && !batch_crc_fits(data, header->size))
    return BATCH_BAD_CRC;
  if (header->size < BATCH_OVERHEAD)
    return BATCH_HEADER_CUT;
  if ((header->attributes & CODEC_MASK) >= CODEC_COUNT)
    return BATCH_BAD_CODEC;
  return BATCH_OK;
}

int batch_check_client(const batch_header *header) {
  if (header->last_offset_delta < 0)
    return BATCH_OFFSET_RANGE;
  if (header->count <= 0)
    return BATCH_COUNT;
  if ((int64_t)header->last_offset_delta + 1 != header->count)
    return BATCH_COUNT_MISMATCH;
  if (header->attributes & CONTROL_FLAG)
    return BATCH_CONTROL;
  if (header->producer_id > -1 && header->base_sequence < 0)
    return BATCH_SEQUENCE;
  return BATCH_OK;
}

int batch_check_producer(const batch_header *header) {
  if (header->producer_id == -1)
    return header->attributes & TRANSACTIONAL_FLAG ? BATCH_PRODUCER : BATCH_OK;
  return header->producer_epoch == -1 || header->base_sequence < 0 ? BATCH_PRODUCER : BATCH_OK;
}

void batch_write_header(uint8_t *data, const batch_header *header) {
  store_64(data, (uint64_t)header->base_offset);
  store_32(data + 8, (uint32_t)(header->size - LOG_OVERHEAD));
  store_32(data + 12, (uint32_t)header->leader_epoch);
  data[MAGIC_AT] = (uint8_t)header->magic;
  store_16(data + ATTRIBUTES_AT, (uint16_t)header->attributes);
  store_32(data + 23, (uint32_t)header->last_offset_delta);
  store_64(data + 27, (uint64_t)header->base_timestamp);
  store_64(data + 35, (uint64_t)header->max_timestamp);
  store_64(data + 43, (uint64_t)header->producer_id);
  store_16(data + 51, (uint16_t)header->producer_epoch);
  store_32(data + 53, (uint32_t)header->base_sequence);
  store_32(data + 57, (uint32_t)header->count);
  store_32(data + CRC_AT, compute_crc(data, header->size));
}

void batch_set_max_timestamp(uint8_t *data, batch_header *header, int append_time, int64_t max_timestamp) {
  int is_append_time = (header->attributes & APPEND_TIME_FLAG) != 0;
  if (is_append_time == append_time && header->max_timestamp == max_timestamp)
    return;
  int16_t known = header->attributes & (CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG);
  header->attributes = append_time ? (int16_t)(known | APPEND_TIME_FLAG) : known;
  header->max_timestamp = max_timestamp;
  store_16(data + ATTRIBUTES_AT, (uint16_t)header->attributes);
  store_64(data + 35, (uint64_t)max_timestamp);
  header->crc = compute_crc(data, header->size);
  store_32(data + CRC_AT, header->crc);
}

void batch_assign(uint8_t *data, int64_t base_offset, int32_t leader_epoch) {
  store_64(data, (uint64_t)base_offset);
  store_32(data + 12, (uint32_t)leader_epoch);
}

#define XX_1 2654435761u
#define XX_2 2246822519u
#define XX_3 3266489917u
#define XX_4 668265263u
#define XX_5 374761393u

static inline uint32_t rotate(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static inline uint32_t load_little(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t xxhash32(const uint8_t *data, size_t size) {
  const uint8_t *end = data + size;
  uint32_t hash = XX_5;
  if (size >= 16) {
    uint32_t lanes[4] = {XX_1 + XX_2, XX_2, 0, 0u - XX_1};
    for (; end - data >= 16; data += 16)
      for (int lane = 0; lane < 4; lane++)
        lanes[lane] = rotate(lanes[lane] + load_little(data + 4 * lane) * XX_2, 13) * XX_1;
    hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  }
  hash += (uint32_t)size;
  for (; end - data >= 4; data += 4)
    hash = rotate(hash + load_little(data) * XX_3, 17) * XX_4;
  for (; data < end; data++)
    hash = rotate(hash + *data * XX_5, 11) * XX_1;
  hash = (hash ^ hash >> 15) * XX_2;
  hash = (hash ^ hash >> 13) * XX_3;
  return hash ^ hash >> 16;
}

#define MURMUR_SEED 0x9747b28cu
#define MURMUR_FACTOR 0x5bd1e995u

uint32_t murmur2(const uint8_t *data, size_t size) {
  uint32_t hash = MURMUR_SEED ^ (uint32_t)size;
  for (; size >= 4; data += 4, size -= 4) {
    uint32_t word = load_little(data) * MURMUR_FACTOR;
    hash = hash * MURMUR_FACTOR ^ (word ^ word >> 24) * MURMUR_FACTOR;
  }
  if (size) {
    for (size_t at = 0; at < size; at++)
      hash ^= (uint32_t)data[at] << 8 * at;
    hash *= MURMUR_FACTOR;
  }
  hash = (hash ^ hash >> 13) * MURMUR_FACTOR;
  return hash ^ hash >> 15;
}
