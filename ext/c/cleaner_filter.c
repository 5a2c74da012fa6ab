/* The second pass: which batches and records stay. See cleaner_pass.h. */
#include "cleaner_pass.h"

#include <stdlib.h>

#include "cleaner_build.h"
#include "cleaner_records.h"

enum { TOGETHER = 16 }; /* records whose places in the map are waited for at once */

/* ---- what becomes of a batch ---- */

static int is_last_of_producer(const filter_pass *filter) {
  const batch_header *header = &filter->pass.source.header;
  const producer_entry *last =
      header->producer_id < 0 ? NULL : producer_find(&filter->last_records, header->producer_id);
  if (!last)
    return 0;
  if (last->first >= 0)
    return last->first == filter->pass.source.last_offset;
  return (header->attributes & CONTROL_FLAG) && last->second == header->producer_epoch;
}

static void keep_aborted(filter_pass *filter, const aborted_entry *entry) {
  uint8_t *at = sink_reserve(&filter->aborted, 34);
  if (!at)
    return;
  store_16(at, 0);
  store_64(at + 2, (uint64_t)entry->producer_id);
  store_64(at + 10, (uint64_t)entry->first_offset);
  store_64(at + 18, (uint64_t)entry->last_offset);
  store_64(at + 26, (uint64_t)entry->last_stable_offset);
}

/* Kafka's shouldDiscardBatch; -1: the marker cannot be read. */
static int may_go(filter_pass *filter, int control) {
  cleaner_pass *pass = &filter->pass;
  const batch_header *header = &pass->source.header;
  const aborted_entry *kept;
  if (!control)
    return transactions_on_batch(pass->transactions, header->producer_id, pass->source.last_offset,
                                 header->magic == 2 && header->attributes & TRANSACTIONAL_FLAG);
  int marker = read_marker(pass);
  if (marker < 0)
    return -1;
  int gone = transactions_on_control(pass->transactions, header->producer_id, pass->source.last_offset,
                                     marker, &kept);
  if (kept)
    keep_aborted(filter, kept);
  return gone;
}

static int decide(filter_pass *filter) {
  const batch_header *header = &filter->pass.source.header;
  int control = header->magic == 2 && header->attributes & CONTROL_FLAG;
  int has_horizon = header->magic == 2 && header->attributes & DELETE_HORIZON_FLAG;
  int gone = may_go(filter, control);
  if (gone < 0)
    return CLEANER_CORRUPT;
  batch_verdict *verdict = &filter->verdict;
  *verdict = (batch_verdict){.horizon = has_horizon ? header->base_timestamp : NO_TIMESTAMP,
                             .highest_time = NO_TIMESTAMP,
                             .highest_offset = -1};
  verdict->discard = gone && (!control || (has_horizon && header->base_timestamp <= filter->now_ms));
  verdict->marker_of_empty = gone && control;
  if (header->magic == 2 && is_last_of_producer(filter))
    verdict->retention = RETENTION_RETAIN_EMPTY;
  else if (filter->pass.source.last_offset + 1 == filter->end_of_round)
    verdict->retention = RETENTION_RETAIN_EMPTY;
  else
    verdict->retention = verdict->discard ? RETENTION_DELETE : RETENTION_DELETE_EMPTY;
  return CLEANER_OK;
}

/* ---- which records stay ---- */

typedef struct {
  int64_t offset, timestamp;
  key_hash hash;
  uint32_t place;
  int looked_up, keyless, has_value;
} candidate;

/* A record that is not past the map's end. */
static int keeps(filter_pass *filter, int64_t offset, key_hash hash, int has_value, int keep_deletes) {
  return offset >= key_map_get(filter->pass.keys, hash) && (has_value || keep_deletes);
}

static int keep_place(filter_pass *filter, uint32_t place) {
  size_t kept = (size_t)filter->verdict.kept;
  if (kept == filter->places_room) {
    size_t room = kept ? 2 * kept : 256;
    uint32_t *larger = realloc(filter->places, room * sizeof *larger);
    if (!larger)
      return CLEANER_NO_MEMORY;
    filter->places = larger;
    filter->places_room = room;
  }
  filter->places[kept] = place;
  return CLEANER_OK;
}

static void note_kept(batch_verdict *verdict, int64_t offset, int64_t timestamp) {
  verdict->kept++;
  verdict->highest_offset = offset;
  if (timestamp > verdict->highest_time)
    verdict->highest_time = timestamp;
}

/* Sorts out a few records whose places in the map are on their way; says whether a tombstone stays. */
static int sort_out(filter_pass *filter, const candidate *records, int count, int keep_deletes,
                    int *tombstone) {
  for (int place = 0; place < count; place++) {
    const candidate *record = &records[place];
    filter->pass.round->invalid_messages += record->keyless;
    if (record->keyless ||
        (record->looked_up && !keeps(filter, record->offset, record->hash, record->has_value, keep_deletes)))
      continue;
    if (keep_place(filter, record->place) != CLEANER_OK)
      return CLEANER_NO_MEMORY;
    note_kept(&filter->verdict, record->offset, record->timestamp);
    *tombstone |= !record->has_value;
  }
  return CLEANER_OK;
}

static void consider(filter_pass *filter, const record_view *record, int control, candidate *found) {
  const batch_header *header = &filter->pass.source.header;
  key_map *keys = filter->pass.keys;
  found->offset = header->base_offset + record->offset_delta;
  found->timestamp = header->attributes & APPEND_TIME_FLAG
                         ? header->max_timestamp
                         : (int64_t)((uint64_t)header->base_timestamp + (uint64_t)record->timestamp_delta);
  found->has_value = record->value_size >= 0;
  int judged = !control && found->offset <= keys->latest_offset;
  found->keyless = judged && record->key_size < 0;
  found->looked_up = judged && record->key_size >= 0;
  if (found->looked_up) {
    found->hash = key_map_hash(keys, record->key, (size_t)record->key_size);
    key_map_expect(keys, found->hash);
  }
}

/* Goes through the records; afterwards `places` and the verdict say what stays. */
static int select_records(filter_pass *filter, int *tombstone) {
  cleaner_pass *pass = &filter->pass;
  batch_verdict *verdict = &filter->verdict;
  candidate records[TOGETHER];
  record_reader reader;
  record_view record;
  int control = (pass->source.header.attributes & CONTROL_FLAG) != 0;
  int keep_deletes =
      !(pass->source.header.attributes & DELETE_HORIZON_FLAG) || filter->now_ms < verdict->horizon;
  int status = CLEANER_OK, more = 1;
  reader_begin(&reader, pass);
  while (more && status == CLEANER_OK) {
    int count = 0;
    const uint8_t *at = reader.at;
    while (count < TOGETHER && (more = reader_next(&reader, pass, &record)) > 0) {
      records[count].place = (uint32_t)(at - reader.start);
      consider(filter, &record, control, &records[count++]);
      at = reader.at;
    }
    verdict->seen += count;
    status = more < 0 ? CLEANER_CORRUPT : sort_out(filter, records, count, keep_deletes, tombstone);
  }
  return status;
}

int filter_ends(const filter_pass *filter) {
  return filter->delete_retention_ms <= INT64_MAX - filter->now_ms;
}

static int filter_records(filter_pass *filter) {
  batch_verdict *verdict = &filter->verdict;
  int tombstone = 0;
  if (verdict->discard)
    verdict->seen = filter->pass.source.header.count;
  else {
    int status = select_records(filter, &tombstone);
    if (status != CLEANER_OK)
      return status;
  }
  filter->pass.round->messages_read += verdict->seen;
  if (!verdict->kept)
    return verdict->retention == RETENTION_RETAIN_EMPTY ? build_empty(filter) : CLEANER_OK;
  int sets_horizon = (tombstone || verdict->marker_of_empty) &&
                     !(filter->pass.source.header.attributes & DELETE_HORIZON_FLAG) && filter_ends(filter);
  if (sets_horizon)
    verdict->horizon = filter->now_ms + filter->delete_retention_ms;
  return verdict->kept == verdict->seen && !sets_horizon ? build_copy(filter) : build_anew(filter);
}

/* ---- batch after batch ---- */

static int filter_passed(filter_pass *filter) {
  filter->pass.round->bytes_read += filter->pass.source.header.size;
  leave_batch(&filter->pass);
  if (filter->aborted.failed)
    return CLEANER_NO_MEMORY;
  return output_flush(&filter->output, filter->pass.round, 0);
}

static int filter_batch(filter_pass *filter) {
  cleaner_pass *pass = &filter->pass;
  int status;
  if (pass->stage == AT_BATCH) {
    if ((status = reach_batch(pass)) != CLEANER_OK)
      return status;
    if (pass->source.header.magic < 2)
      return CLEANER_LEGACY;
    pass->stage = AT_VERDICT;
    if (pass->source.header.attributes & CONTROL_FLAG && is_packed(pass))
      return CLEANER_UNPACK;
  }
  if (pass->stage == AT_VERDICT) {
    if ((status = decide(filter)) != CLEANER_OK)
      return status;
    if (filter->verdict.retention == RETENTION_DELETE)
      return filter_passed(filter);
    pass->stage = AT_RECORDS;
    if (!filter->verdict.discard && is_packed(pass))
      return CLEANER_UNPACK;
  }
  if (pass->stage == AT_RECORDS) {
    pass->stage = AT_PACKED;
    if ((status = filter_records(filter)) != CLEANER_OK)
      return status;
  }
  return filter_passed(filter);
}

int filter_run(filter_pass *filter) {
  int status;
  do {
    status = filter_batch(filter);
    if (filter->pass.transactions->no_memory)
      return CLEANER_NO_MEMORY;
  } while (status == CLEANER_OK);
  return status;
}

/* ---- formats 0 and 1 ---- */

void filter_begin_old(filter_pass *filter) {
  (void)decide(filter); /* they have no control batches, so nothing can be wrong */
}

int filter_keeps_old(filter_pass *filter, int64_t offset, const uint8_t *key, int32_t key_size, int has_value,
                     int keep_deletes) {
  key_map *keys = filter->pass.keys;
  filter->verdict.seen++;
  if (offset > keys->latest_offset)
    return 1;
  if (key_size < 0) {
    filter->pass.round->invalid_messages++;
    return 0;
  }
  return keeps(filter, offset, key_map_hash(keys, key, (size_t)key_size), has_value, keep_deletes);
}

int filter_end_old(filter_pass *filter) {
  filter->pass.round->messages_read += filter->verdict.seen;
  int status = CLEANER_OK;
  if (!filter->verdict.kept && filter->verdict.retention == RETENTION_RETAIN_EMPTY)
    status = build_empty(filter);
  return status == CLEANER_OK ? filter_passed(filter) : status;
}

void filter_free(filter_pass *filter) {
  source_free(&filter->pass.source);
  sink_free(&filter->pass.unpacked);
  sink_free(&filter->packed);
  sink_free(&filter->aborted);
  output_free(&filter->output);
  producer_free(&filter->last_records);
  free(filter->places);
  filter->places = NULL;
  filter->places_room = 0;
}
