/* Record batches: framing, the header of format 2, and the checks that need the header alone.
 *
 * A batch of format 2 (big-endian; the CRC covers everything from `attributes` on, so that base offset and
 * leader epoch can be assigned without touching it):
 *
 *    0  int64   base offset             23  int32  last offset delta
 *    8  int32   length of what follows  27  int64  base timestamp
 *   12  int32   leader epoch            35  int64  max timestamp
 *   16  int8    magic                   43  int64  producer id
 *   17  uint32  crc                     51  int16  producer epoch
 *   21  int16   attributes              53  int32  base sequence
 *                                       57  int32  count of records
 *                                       61  records, compressed as a whole
 *
 * attributes: bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon (in base
 * timestamp). Formats 0 and 1, single messages or a compressed set of them, share the first 17 bytes but for
 * what is at 12:
 *
 *    0  int64   offset of the last message inside
 *   12  uint32  crc32 of everything from byte 16
 *   17  int8    attributes             18  int64  timestamp (1)
 */
#ifndef PYKAFKAD_BATCH_H
#define PYKAFKAD_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "big_endian.h"

#define LOG_OVERHEAD 12
#define LEGACY_OVERHEAD                                                                                      \
  14 /* the least a length may say: a message of format 0 with neither key nor value                         \
      */
#define MAGIC_AT 16
#define UP_TO_MAGIC 17
#define CRC_AT 17
#define ATTRIBUTES_AT 21
#define BATCH_OVERHEAD 61

#define CODEC_MASK 0x07
#define APPEND_TIME_FLAG 0x08
#define TRANSACTIONAL_FLAG 0x10
#define CONTROL_FLAG 0x20
#define DELETE_HORIZON_FLAG 0x40
#define CODEC_COUNT 5
#define NO_TIMESTAMP ((int64_t) - 1)

/* What can be wrong; records.pyx has the table from these to Kafka's error codes and words. */
enum batch_status {
  BATCH_OK = 0,
  BATCH_END,           /* fewer bytes are left than a whole batch */
  BATCH_BAD_SIZE,      /* a length below LEGACY_OVERHEAD */
  BATCH_BAD_MAGIC,     /* neither 0, 1 nor 2 */
  BATCH_SIZE_OVERFLOW, /* a length that overflows when the overhead is added */
  BATCH_HEADER_CUT,    /* too short to have a last offset */
  BATCH_BASE_OFFSET,   /* a client's base offset is not 0 */
  BATCH_TOO_LARGE,     /* over the topic's max.message.bytes */
  BATCH_BAD_CRC,       /* or shorter than its header */
  BATCH_BAD_CODEC,
  BATCH_OFFSET_RANGE,   /* last offset before base offset */
  BATCH_COUNT,          /* no records, from a client */
  BATCH_COUNT_MISMATCH, /* count and offsets disagree */
  BATCH_CONTROL,        /* control batch from a client */
  BATCH_SEQUENCE,       /* producer id without a sequence */
  BATCH_PRODUCER,       /* producer fields that Kafka does not write, in a batch to be encoded again */
  BATCH_STATUS_LAST
};

typedef struct {
  int64_t base_offset;
  int64_t base_timestamp;
  int64_t max_timestamp;
  int64_t producer_id;
  int32_t size; /* whole batch, LOG_OVERHEAD included */
  int32_t leader_epoch;
  uint32_t crc;
  int32_t last_offset_delta;
  int32_t base_sequence;
  int32_t count;
  int16_t attributes;
  int16_t producer_epoch;
  int8_t magic;
} batch_header;

/* Of any header, as Java's longs: a client may send any base offset. */
static inline int64_t batch_last_offset(const batch_header *header) {
  return (int64_t)((uint64_t)header->base_offset + (uint64_t)(int64_t)header->last_offset_delta);
}

/* Frames the batch at `data`: BATCH_OK and its size, BATCH_END when it is not whole, or what is wrong with
 * it. */
int batch_next(const uint8_t *data, size_t size, int32_t *batch_size, int8_t *magic);

static inline void batch_read_format_2(const uint8_t *at, batch_header *header) {
  header->leader_epoch = (int32_t)load_32(at + 12);
  header->crc = load_32(at + CRC_AT);
  header->attributes = (int16_t)load_16(at + ATTRIBUTES_AT);
  header->last_offset_delta = (int32_t)load_32(at + 23);
  header->base_timestamp = (int64_t)load_64(at + 27);
  header->max_timestamp = (int64_t)load_64(at + 35);
  header->producer_id = (int64_t)load_64(at + 43);
  header->producer_epoch = (int16_t)load_16(at + 51);
  header->base_sequence = (int32_t)load_32(at + 53);
  header->count = (int32_t)load_32(at + 57);
}

static inline void batch_read_old_format(const uint8_t *at, batch_header *header) {
  int is_timed = header->magic == 1;
  header->leader_epoch = -1;
  header->crc = load_32(at + 12);
  header->attributes = at[17] & (is_timed ? CODEC_MASK | APPEND_TIME_FLAG : CODEC_MASK);
  header->last_offset_delta = 0;
  header->base_timestamp = NO_TIMESTAMP;
  header->max_timestamp = is_timed ? (int64_t)load_64(at + 18) : NO_TIMESTAMP;
  header->producer_id = -1;
  header->producer_epoch = -1;
  header->base_sequence = -1;
  header->count = -1;
}

/* Reads the header of a framed batch whose first BATCH_OVERHEAD bytes are there; what formats 0 and 1 do not
 * have is -1, their count of records too.
 */
static inline void batch_read_whole_header(const uint8_t *at, int32_t size, batch_header *header) {
  header->size = size;
  header->base_offset = (int64_t)load_64(at);
  header->magic = (int8_t)at[MAGIC_AT];
  if (header->magic == 2)
    batch_read_format_2(at, header);
  else
    batch_read_old_format(at, header);
}

/* The same of any framed batch: fields beyond its end (a cut header) read as zero. */
void batch_read_header(const uint8_t *data, int32_t size, batch_header *header);

/* Is the batch as long as its header, and does its CRC fit? */
int batch_crc_fits(const uint8_t *data, int32_t size);

/* What an append checks before it looks at records; in Kafka's order. */
int batch_check_append(const uint8_t *data, const batch_header *header, int32_t max_size, int from_client,
                       int with_crc);

/* What the log validator checks in the header; in Kafka's order. */
int batch_check_client(const batch_header *header);

/* May a batch with these producer fields be written anew? */
int batch_check_producer(const batch_header *header);

/* Writes the header, length and CRC included, over the first BATCH_OVERHEAD bytes of `data`. */
void batch_write_header(uint8_t *data, const batch_header *header);

/* Sets the timestamp type and maximum, and the CRC, when they are not so already. Other attribute bits that
 * Kafka does not know are cleared when it writes, and only then. */
void batch_set_max_timestamp(uint8_t *data, batch_header *header, int append_time, int64_t max_timestamp);

void batch_assign(uint8_t *data, int64_t base_offset, int32_t leader_epoch);

/* xxHash32 with seed 0: LZ4 frames carry it for headers and blocks. */
uint32_t xxhash32(const uint8_t *data, size_t size);

/* The hash by which Kafka's clients choose a key's partition. */
uint32_t murmur2(const uint8_t *data, size_t size);

#endif
