#include "segment_check.h"

#include <stdlib.h>
#include <string.h>

#include "crc32c.h"

/* CRC-32 as formats 0 and 1 have it. */
static uint32_t crc32_old(uint32_t *table, uint32_t seed, const uint8_t *data, size_t size) {
  if (table[1] == 0)
    for (uint32_t slot = 0; slot < 256; slot++) {
      uint32_t value = slot;
      for (int bit = 0; bit < 8; bit++)
        value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
      table[slot] = value;
    }
  uint32_t sum = ~seed;
  for (size_t at = 0; at < size; at++)
    sum = table[(sum ^ data[at]) & 0xFF] ^ sum >> 8;
  return ~sum;
}

int segment_check_begin(segment_check *check, int fd, int64_t base_offset, int64_t end) {
  memset(check, 0, sizeof *check);
  check->fd = fd;
  check->base_offset = check->next_offset = check->max_timestamp_offset = base_offset;
  check->end = end;
  check->interval = INT64_MAX;
  check->max_timestamp = -1;
  check->epoch = -1;
  check->window = malloc(CHECK_WINDOW);
  check->notables = malloc(CHECK_NOTABLES * sizeof(check_notable));
  check->entries = malloc(CHECK_ENTRIES * sizeof(check_entry));
  return check->window && check->notables && check->entries ? 0 : -1;
}

void segment_check_end(segment_check *check) {
  free(check->window);
  free(check->notables);
  free(check->entries);
  check->window = NULL;
  check->notables = NULL;
  check->entries = NULL;
}

/* Bytes from `position` on that are in the window afterwards: `wanted` of them, or as many as there are; -1:
 * errno.
 */
static int64_t look(segment_check *check, int64_t position, int64_t wanted) {
  int64_t held = check->window_start + check->window_size - position;
  if (position >= check->window_start && held >= wanted)
    return held;
  int64_t left = check->end - position;
  int64_t got =
      segment_pread(check->fd, check->window, (size_t)(left < CHECK_WINDOW ? left : CHECK_WINDOW), position);
  if (got < 0)
    return -1;
  check->window_start = position;
  check->window_size = got;
  return got;
}

static const uint8_t *bytes_at(const segment_check *check, int64_t position) {
  return check->window + (position - check->window_start);
}

static int sum_fits(segment_check *check, const batch_header *batch) {
  int64_t at = check->position + (batch->magic == 2 ? ATTRIBUTES_AT : MAGIC_AT);
  int64_t end = check->position + batch->size;
  uint32_t sum = 0;
  while (at < end) {
    int64_t held = look(check, at, end - at < CHECK_WINDOW ? end - at : CHECK_WINDOW);
    if (held < 0)
      return CHECK_ERRNO;
    if (held == 0)
      return CHECK_TORN; /* the file became shorter meanwhile */
    int64_t size = held < end - at ? held : end - at;
    sum = batch->magic == 2 ? crc32c(sum, bytes_at(check, at), (size_t)size)
                            : crc32_old(check->crc32_table, sum, bytes_at(check, at), (size_t)size);
    at += size;
  }
  return sum == batch->crc ? CHECK_ON : CHECK_SUM;
}

/* Looks at the batch at `position`: CHECK_ON when it is good. */
static int examine(segment_check *check, batch_header *batch) {
  int64_t left = check->end - check->position;
  int64_t held = look(check, check->position, left < BATCH_OVERHEAD ? left : BATCH_OVERHEAD);
  if (held < 0)
    return CHECK_ERRNO;
  int verdict = segment_parse(bytes_at(check, check->position), (size_t)held, left, batch);
  if (verdict != SEGMENT_OK) {
    memset(batch, 0, sizeof *batch);
    return verdict == SEGMENT_TORN ? CHECK_TORN : CHECK_IMPOSSIBLE;
  }
  int fits = sum_fits(check, batch);
  if (fits != CHECK_ON)
    return fits;
  if (batch->base_offset < check->next_offset)
    return CHECK_ORDER;
  if (batch_last_offset(batch) - check->base_offset > INT32_MAX)
    return CHECK_FAR;
  if (batch->leader_epoch >= 0 && batch->leader_epoch < check->epoch)
    return CHECK_EPOCH;
  return CHECK_ON;
}

/* -- indexes that are there */

static void wrong_entry(check_index *index) {
  if (index->wrong++ == 0)
    index->first_wrong = index->at;
}

static void compare_offsets(segment_check *check, const batch_header *batch) {
  check_index *index = &check->offset_index;
  for (; index->at < index->count; index->at++) {
    const uint8_t *entry = index->data + index->at * 8;
    int64_t offset = check->base_offset + load_32(entry), position = load_32(entry + 4);
    if (position > check->position)
      return;
    /* Older brokers put the last offset of all batches of an append, with the place of the first. */
    int rises = index->at == 0 || load_32(entry) > load_32(entry - 8);
    if (position < check->position || offset < batch_last_offset(batch) || !rises)
      wrong_entry(index);
  }
}

static void compare_times(segment_check *check, const batch_header *batch) {
  check_index *index = &check->time_index;
  for (; index->at < index->count; index->at++) {
    const uint8_t *entry = index->data + index->at * 12;
    int64_t timestamp = (int64_t)load_64(entry), offset = check->base_offset + load_32(entry + 8);
    if (offset > batch_last_offset(batch))
      return;
    int rises = index->at == 0 ||
                (timestamp > (int64_t)load_64(entry - 12) && load_32(entry + 8) >= load_32(entry - 4));
    int inside = batch->magic == 2 ? offset >= batch->base_offset : offset >= check->next_offset;
    if (!inside || timestamp != batch->max_timestamp || !rises)
      wrong_entry(index);
  }
}

void segment_check_finish_indexes(segment_check *check) {
  check_index *index = &check->offset_index;
  for (int64_t slot = 0; slot < index->at; slot++)
    if (check->base_offset + load_32(index->data + slot * 8) >= check->next_offset && index->wrong == 0) {
      index->wrong = 1;
      index->first_wrong = slot;
    }
  for (; index->at < index->count; index->at++)
    wrong_entry(index);
  index = &check->time_index;
  for (; index->at < index->count; index->at++)
    wrong_entry(index);
}

/* -- the walk */

static void take(segment_check *check, const batch_header *batch) {
  if (batch->max_timestamp > check->max_timestamp) {
    check->max_timestamp = batch->max_timestamp;
    check->max_timestamp_offset = batch_last_offset(batch);
  }
  if (check->unindexed > check->interval) {
    check_entry *entry = &check->entries[check->entry_count++];
    entry->last_offset = batch_last_offset(batch);
    entry->position = check->position;
    entry->max_timestamp = check->max_timestamp;
    entry->max_timestamp_offset = check->max_timestamp_offset;
    check->unindexed = 0;
  }
  check->unindexed += batch->size;
  if (batch->producer_id >= 0 || batch->leader_epoch > check->epoch) {
    check_notable *notable = &check->notables[check->notable_count++];
    notable->batch = *batch;
    notable->position = check->position;
  }
  if (batch->leader_epoch > check->epoch)
    check->epoch = batch->leader_epoch;
  if (check->offset_index.data != NULL)
    compare_offsets(check, batch);
  if (check->time_index.data != NULL)
    compare_times(check, batch);
  if (batch->magic == 2 && batch->base_offset > check->next_offset)
    check->gaps++;
  check->next_offset = batch_last_offset(batch) + 1;
  check->position += batch->size;
  check->batches++;
  check->records += batch->count > 0 ? batch->count : 0;
}

int segment_check_turn(segment_check *check, int64_t max_bytes) {
  int64_t stop = check->position > INT64_MAX - max_bytes ? INT64_MAX : check->position + max_bytes;
  check->notable_count = check->entry_count = 0;
  while (check->position < check->end) {
    if (check->notable_count == CHECK_NOTABLES || check->entry_count == CHECK_ENTRIES ||
        check->position >= stop)
      return CHECK_ON;
    batch_header batch;
    int verdict = examine(check, &batch);
    if (verdict != CHECK_ON) {
      check->current = batch;
      return verdict;
    }
    take(check, &batch);
  }
  return CHECK_END;
}

enum { THIN_SLOTS = 2 * CHECK_NOTABLES };

typedef struct {
  int64_t producer_id;
  int later; /* batches of it that were met, from the end on */
} tally;

static tally *tally_of(tally *tallies, int64_t producer_id) {
  size_t slot = (size_t)((uint64_t)producer_id * 0x9E3779B97F4A7C15u >> 40) % THIN_SLOTS;
  while (tallies[slot].later > 0 && tallies[slot].producer_id != producer_id)
    slot = (slot + 1) % THIN_SLOTS;
  tallies[slot].producer_id = producer_id;
  return &tallies[slot];
}

void segment_check_thin(segment_check *check) {
  tally *tallies = calloc(THIN_SLOTS, sizeof(tally));
  if (tallies == NULL)
    return; /* all of them are right too */
  int kept = check->notable_count;
  int32_t epoch_before = -2;
  for (int slot = check->notable_count - 1; slot >= 0; slot--) {
    const batch_header *batch = &check->notables[slot].batch;
    epoch_before = slot > 0 ? check->notables[slot - 1].batch.leader_epoch : -2;
    int is_control = (batch->attributes & CONTROL_FLAG) != 0,
        is_transactional = (batch->attributes & TRANSACTIONAL_FLAG) != 0;
    int keep =
        is_control || is_transactional || batch->producer_id < 0 || batch->leader_epoch != epoch_before;
    if (batch->producer_id >= 0 && !is_control) {
      tally *known = tally_of(tallies, batch->producer_id);
      keep = keep || known->later < CHECK_REMEMBERED;
      known->later++;
    }
    if (keep)
      check->notables[--kept] = check->notables[slot];
  }
  memmove(check->notables, check->notables + kept,
          (size_t)(check->notable_count - kept) * sizeof(check_notable));
  check->notable_count -= kept;
  free(tallies);
}
