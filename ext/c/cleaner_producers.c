/* See cleaner_producers.h. */
#include "cleaner_producers.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16

/* ---- producer id -> two numbers ---- */

static uint32_t home_of(const producer_table *table, int64_t producer_id) {
  uint64_t mixed = (uint64_t)producer_id * 0x9e3779b97f4a7c15u;
  return (uint32_t)(mixed >> 32) & (table->capacity - 1);
}

/* Where the id is, or the free place where it belongs. */
static producer_entry *place_of(const producer_table *table, int64_t producer_id) {
  uint32_t slot = home_of(table, producer_id);
  while (table->entries[slot].taken && table->entries[slot].producer_id != producer_id)
    slot = (slot + 1) & (table->capacity - 1);
  return &table->entries[slot];
}

producer_entry *producer_find(const producer_table *table, int64_t producer_id) {
  if (!table->size)
    return NULL;
  producer_entry *entry = place_of(table, producer_id);
  return entry->taken ? entry : NULL;
}

static int grow_table(producer_table *table) {
  producer_table larger = {.capacity = table->capacity ? 2 * table->capacity : FIRST_ROOM,
                           .size = table->size};
  larger.entries = calloc(larger.capacity, sizeof *larger.entries);
  if (!larger.entries)
    return -1;
  for (uint32_t slot = 0; slot < table->capacity; slot++)
    if (table->entries[slot].taken)
      *place_of(&larger, table->entries[slot].producer_id) = table->entries[slot];
  free(table->entries);
  *table = larger;
  return 0;
}

producer_entry *producer_add(producer_table *table, int64_t producer_id) {
  if (2 * table->size >= table->capacity && grow_table(table))
    return NULL;
  producer_entry *entry = place_of(table, producer_id);
  if (!entry->taken) {
    *entry = (producer_entry){.producer_id = producer_id, .taken = 1};
    table->size++;
  }
  return entry;
}

void producer_remove(producer_table *table, producer_entry *entry) {
  uint32_t mask = table->capacity - 1;
  uint32_t hole = (uint32_t)(entry - table->entries);
  for (uint32_t slot = (hole + 1) & mask; table->entries[slot].taken; slot = (slot + 1) & mask) {
    uint32_t home = home_of(table, table->entries[slot].producer_id);
    if (((slot - home) & mask) >= ((slot - hole) & mask)) { /* it may stand in the hole */
      table->entries[hole] = table->entries[slot];
      hole = slot;
    }
  }
  table->entries[hole].taken = 0;
  table->size--;
}

void producer_free(producer_table *table) {
  free(table->entries);
  memset(table, 0, sizeof *table);
}

/* ---- aborted transactions that are not yet reached: a heap ---- */

static aborted_entry *one_more(aborted_entry **entries, uint32_t *count, uint32_t *room) {
  if (*count == *room) {
    uint32_t larger = *room ? 2 * *room : FIRST_ROOM;
    aborted_entry *grown = realloc(*entries, larger * sizeof **entries);
    if (!grown)
      return NULL;
    *entries = grown;
    *room = larger;
  }
  return &(*entries)[(*count)++];
}

void transactions_add(transactions *state, const aborted_entry *entry) {
  if (!one_more(&state->waiting, &state->waiting_count, &state->waiting_room)) {
    state->no_memory = 1;
    return;
  }
  uint32_t place = state->waiting_count - 1;
  for (; place && entry->first_offset < state->waiting[(place - 1) / 2].first_offset; place = (place - 1) / 2)
    state->waiting[place] = state->waiting[(place - 1) / 2];
  state->waiting[place] = *entry;
}

static aborted_entry take_first(transactions *state) {
  aborted_entry *heap = state->waiting;
  aborted_entry first = heap[0], moved = heap[--state->waiting_count];
  uint32_t place = 0;
  for (;;) {
    uint32_t child = 2 * place + 1;
    if (child + 1 < state->waiting_count && heap[child + 1].first_offset < heap[child].first_offset)
      child++;
    if (child >= state->waiting_count || heap[child].first_offset >= moved.first_offset)
      break;
    heap[place] = heap[child];
    place = child;
  }
  heap[place] = moved;
  return first;
}

/* ---- the walk ---- */

static void open_aborted(transactions *state, const aborted_entry *entry) {
  if (producer_find(&state->aborted, entry->producer_id))
    return;
  aborted_entry *known = one_more(&state->known, &state->known_count, &state->known_room);
  producer_entry *opened = known ? producer_add(&state->aborted, entry->producer_id) : NULL;
  if (!opened) {
    state->no_memory = 1;
    return;
  }
  *known = *entry;
  opened->first = state->known_count - 1;
}

static void reach(transactions *state, int64_t offset) {
  while (state->waiting_count && state->waiting[0].first_offset <= offset) {
    aborted_entry entry = take_first(state);
    open_aborted(state, &entry);
  }
}

int transactions_on_batch(transactions *state, int64_t producer_id, int64_t last_offset, int transactional) {
  reach(state, last_offset);
  if (!transactional)
    return 0;
  producer_entry *aborted = producer_find(&state->aborted, producer_id);
  if (aborted)
    aborted->second = 1;
  else if (!producer_add(&state->committed, producer_id))
    state->no_memory = 1;
  return aborted != NULL;
}

int transactions_on_control(transactions *state, int64_t producer_id, int64_t last_offset, int marker,
                            const aborted_entry **kept) {
  reach(state, last_offset);
  *kept = NULL;
  if (marker == MARKER_OTHER)
    return 0;
  if (marker == MARKER_EMPTY) /* it was emptied by an earlier cleaning */
    return 1;
  producer_table *table = marker == MARKER_ABORT ? &state->aborted : &state->committed;
  producer_entry *opened = producer_find(table, producer_id);
  if (!opened)
    return 1;
  int seen = marker == MARKER_COMMIT || opened->second;
  if (marker == MARKER_ABORT && seen)
    *kept = &state->known[opened->first];
  producer_remove(table, opened);
  return !seen;
}

void transactions_free(transactions *state) {
  free(state->waiting);
  free(state->known);
  producer_free(&state->aborted);
  producer_free(&state->committed);
  memset(state, 0, sizeof *state);
}
