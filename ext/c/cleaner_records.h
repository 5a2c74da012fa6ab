/* The records of a pass's current batch, packed or not. Part of cleaner_*.c. */
#ifndef PYKAFKAD_CLEANER_RECORDS_H
#define PYKAFKAD_CLEANER_RECORDS_H

#include "cleaner_pass.h"

/* Have the next batch in hand. */
static inline int reach_batch(cleaner_pass *pass) {
  if (round_cancelled(pass->round))
    return CLEANER_CANCELLED;
  int status = source_look(&pass->source, pass->round);
  pass->reason = pass->source.reason;
  return status;
}

static inline void leave_batch(cleaner_pass *pass) {
  source_pass(&pass->source);
  pass->is_unpacked = 0;
  pass->unpacked.size = 0;
  pass->stage = AT_BATCH;
}

/* Does somebody have to decompress before the records can be read? */
static inline int is_packed(const cleaner_pass *pass) {
  const batch_header *header = &pass->source.header;
  return (header->attributes & CODEC_MASK) != 0 && header->count != 0 && !pass->is_unpacked;
}

typedef struct {
  const uint8_t *start, *at, *end;
  int32_t left;
  int64_t last_delta;
} record_reader;

static inline void reader_begin(record_reader *reader, const cleaner_pass *pass) {
  if (pass->is_unpacked) {
    reader->start = pass->unpacked.data;
    reader->end = reader->start + pass->unpacked.size;
  } else {
    reader->start = pass->source.batch + BATCH_OVERHEAD;
    reader->end = pass->source.batch + pass->source.header.size;
  }
  reader->at = reader->start;
  reader->left = pass->source.header.count;
  reader->last_delta = -1;
}

/* 1: there is one; 0: that were all; -1: they are not what the batch says, see pass->reason. */
static inline int reader_next(record_reader *reader, cleaner_pass *pass, record_view *record) {
  if (reader->left == 0)
    return 0;
  if (reader->left < 0 || record_read(reader->at, reader->end, record) != RECORDS_OK) {
    pass->reason = "records that cannot be read";
    return -1;
  }
  if (record->offset_delta <= reader->last_delta ||
      record->offset_delta > pass->source.header.last_offset_delta) {
    pass->reason = "offsets of records that do not rise, or leave their batch";
    return -1;
  }
  reader->last_delta = record->offset_delta;
  reader->at = record->end;
  if (--reader->left == 0 && reader->at != reader->end) {
    pass->reason = "bytes behind the last record of a batch";
    return -1;
  }
  return 1;
}

/* Which transaction marker the control batch is (enum marker), or -1. */
static inline int read_marker(cleaner_pass *pass) {
  record_reader reader;
  record_view record;
  reader_begin(&reader, pass);
  int found = reader_next(&reader, pass, &record);
  if (found <= 0)
    return found < 0 ? -1 : MARKER_EMPTY;
  if (record.key_size < 4 || record.key[0] & 0x80) {
    pass->reason = "a control record with a key no such record has";
    return -1;
  }
  int type = load_16(record.key + 2);
  return type == 0 ? MARKER_ABORT : type == 1 ? MARKER_COMMIT : MARKER_OTHER;
}

#endif
