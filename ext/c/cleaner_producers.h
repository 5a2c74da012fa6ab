/* What the cleaner knows of producers: which transactions were aborted, and the last record of each. Knows no
 * Python.
 *
 * transactions is Kafka's CleanedTransactionMetadata: while batches are walked in order it says of each batch
 * whether it belongs to an aborted transaction, and of each marker whether anything of its transaction was
 * seen.
 */
#ifndef PYKAFKAD_CLEANER_PRODUCERS_H
#define PYKAFKAD_CLEANER_PRODUCERS_H

#include <stdint.h>

/* Producer id -> two numbers. Open addressing; nothing is allocated before the first entry. */
typedef struct {
  int64_t producer_id, first, second;
  int taken;
} producer_entry;

typedef struct {
  producer_entry *entries;
  uint32_t size, capacity;
} producer_table;

producer_entry *producer_find(const producer_table *table, int64_t producer_id);
producer_entry *producer_add(producer_table *table, int64_t producer_id); /* NULL: no memory */
void producer_remove(producer_table *table, producer_entry *entry);
void producer_free(producer_table *table);

/* As an entry of a .txnindex. */
typedef struct {
  int64_t producer_id, first_offset, last_offset, last_stable_offset;
} aborted_entry;

typedef struct {
  aborted_entry *waiting; /* a heap: the lowest first offset is on top */
  uint32_t waiting_count, waiting_room;
  aborted_entry *known; /* those reached; `aborted` points into it */
  uint32_t known_count, known_room;
  producer_table aborted;   /* open here: first is the place in `known`, second whether a batch was seen */
  producer_table committed; /* open here and not aborted */
  int no_memory;
} transactions;

enum marker { MARKER_ABORT = 0, MARKER_COMMIT = 1, MARKER_OTHER = 2, MARKER_EMPTY = 3 };

void transactions_add(transactions *state, const aborted_entry *entry);
void transactions_free(transactions *state);

/* A data batch: does it belong to an aborted transaction? */
int transactions_on_batch(transactions *state, int64_t producer_id, int64_t last_offset, int transactional);

/* A control batch: may it go? In `kept` the aborted transaction of which batches remain, with its marker. */
int transactions_on_control(transactions *state, int64_t producer_id, int64_t last_offset, int marker,
                            const aborted_entry **kept);

#endif
