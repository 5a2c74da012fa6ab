/* The first pass: the keys of the dirty part go into the map. See cleaner_pass.h. */
#include "cleaner_pass.h"

#include "cleaner_records.h"

enum { TOGETHER = 16 }; /* records whose places in the map are waited for at once */

typedef struct {
  int64_t offset;
  key_hash hash;
  int keyed;
} hashed;

static int put(index_pass *index, const hashed *record) {
  if (record->keyed) {
    if (index->pass.keys->size >= index->max_keys)
      return CLEANER_FULL;
    if (key_map_put(index->pass.keys, record->hash, record->offset) != KEY_MAP_OK)
      return CLEANER_NO_MEMORY;
  }
  index->pass.round->index_messages_read++;
  return CLEANER_OK;
}

static int put_all(index_pass *index, const hashed *records, int count) {
  int status = CLEANER_OK;
  for (int place = 0; place < count && status == CLEANER_OK; place++)
    status = put(index, &records[place]);
  return status;
}

static int index_records(index_pass *index) {
  cleaner_pass *pass = &index->pass;
  hashed records[TOGETHER];
  record_reader reader;
  record_view record;
  int status = CLEANER_OK, more = 1;
  reader_begin(&reader, pass);
  while (more && status == CLEANER_OK) {
    int count = 0;
    while (count < TOGETHER && (more = reader_next(&reader, pass, &record)) > 0) {
      hashed *found = &records[count++];
      found->offset = pass->source.header.base_offset + record.offset_delta;
      found->keyed = record.key_size >= 0 && found->offset >= index->start_offset;
      if (found->keyed) {
        found->hash = key_map_hash(pass->keys, record.key, (size_t)record.key_size);
        key_map_expect(pass->keys, found->hash);
      }
    }
    status = more < 0 ? CLEANER_CORRUPT : put_all(index, records, count);
  }
  return status;
}

/* 1: its records have to be looked at; 0: not; or -1. */
static int wants_records(index_pass *index) {
  cleaner_pass *pass = &index->pass;
  const batch_header *header = &pass->source.header;
  if (header->attributes & CONTROL_FLAG) {
    const aborted_entry *kept;
    int marker = read_marker(pass);
    if (marker < 0)
      return -1;
    transactions_on_control(pass->transactions, header->producer_id, pass->source.last_offset, marker, &kept);
    pass->round->index_messages_read++;
    return 0;
  }
  if (!transactions_on_batch(pass->transactions, header->producer_id, pass->source.last_offset,
                             header->attributes & TRANSACTIONAL_FLAG))
    return header->count != 0;
  pass->round->index_messages_read += header->count;
  return 0;
}

void index_passed(index_pass *index) {
  cleaner_pass *pass = &index->pass;
  if (pass->source.last_offset >= index->start_offset)
    pass->keys->latest_offset = pass->source.last_offset;
  pass->round->index_bytes_read += pass->source.header.size;
  leave_batch(pass);
}

static int index_batch(index_pass *index) {
  cleaner_pass *pass = &index->pass;
  int status;
  if (pass->stage == AT_BATCH) {
    if ((status = reach_batch(pass)) != CLEANER_OK)
      return status;
    if (pass->source.last_offset >= index->end_offset)
      return CLEANER_LIMIT;
    if (pass->source.header.magic < 2)
      return CLEANER_LEGACY;
    pass->stage = AT_VERDICT;
    if (pass->source.header.attributes & CONTROL_FLAG && is_packed(pass))
      return CLEANER_UNPACK;
  }
  if (pass->stage == AT_VERDICT) {
    int wanted = wants_records(index);
    if (wanted < 0)
      return CLEANER_CORRUPT;
    pass->stage = AT_RECORDS;
    if (!wanted) {
      index_passed(index);
      return CLEANER_OK;
    }
    if (is_packed(pass))
      return CLEANER_UNPACK;
  }
  if ((status = index_records(index)) == CLEANER_OK)
    index_passed(index);
  return status;
}

int index_run(index_pass *index) {
  int status;
  do {
    status = index_batch(index);
    if (index->pass.transactions->no_memory)
      return CLEANER_NO_MEMORY;
  } while (status == CLEANER_OK);
  return status;
}

int index_old(index_pass *index, int64_t offset, const uint8_t *key, int32_t key_size) {
  hashed record = {.offset = offset, .keyed = key_size >= 0 && offset >= index->start_offset};
  if (record.keyed)
    record.hash = key_map_hash(index->pass.keys, key, (size_t)key_size);
  return put(index, &record);
}
