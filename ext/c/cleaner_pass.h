/* The two passes over a compacted log, as Kafka's Cleaner and MemoryRecords.filterTo do them. Knows no
 * Python.
 *
 * A pass runs batch after batch until something is the caller's to do (CLEANER_UNPACK, _PACK, _LEGACY), the
 * source ends or something is wrong; it is called again to go on. The verdict on a batch is one of three:
 *
 * DELETE: it belongs to an aborted transaction, or is a marker whose transaction is gone and whose delete
 * horizon has passed.
 *
 * RETAIN_EMPTY: it has the last record of its producer, or is the last batch of the round, so that its header
 * stays even when none of its records does.
 *
 * DELETE_EMPTY: it goes when none of its records is kept.
 *
 * A record is kept when no later one has its key; a tombstone until the batch's delete horizon, which is set
 * in place of the base timestamp the first time the batch is cleaned (KIP-534). Batches that lose nothing are
 * copied as they are. Offsets, sequences and the last offset of a batch never change.
 */
#ifndef PYKAFKAD_CLEANER_PASS_H
#define PYKAFKAD_CLEANER_PASS_H

#include "cleaner_files.h"
#include "cleaner_map.h"
#include "cleaner_producers.h"

enum cleaner_stage { AT_BATCH, AT_VERDICT, AT_RECORDS, AT_PACKED };

/* What both passes have in hand. */
typedef struct {
  cleaner_source source;
  cleaner_round *round;
  key_map *keys;
  transactions *transactions;
  int stage;
  byte_sink unpacked; /* records of the current batch, decompressed */
  int is_unpacked;
  const char *reason;
} cleaner_pass;

typedef struct {
  cleaner_pass pass;
  int64_t start_offset, end_offset, max_keys;
} index_pass;

int index_run(index_pass *index);

/* Of a batch of format 0 or 1, which the caller reads: a record; and at last the batch is passed. */
int index_old(index_pass *index, int64_t offset, const uint8_t *key, int32_t key_size);
void index_passed(index_pass *index);

enum retention { RETENTION_DELETE, RETENTION_RETAIN_EMPTY, RETENTION_DELETE_EMPTY };

typedef struct {
  int retention;
  int discard;            /* no record is kept, whatever it is */
  int marker_of_empty;    /* nothing is left of the transaction this marker ends */
  int64_t horizon;        /* the batch's, or the one it gets; -1: none */
  int64_t kept, seen;     /* records */
  int64_t highest_offset; /* of those kept */
  int64_t highest_time;   /* of those kept */
} batch_verdict;

typedef struct {
  cleaner_pass pass;
  cleaner_output output;
  producer_table last_records; /* first: last data offset, -1: only a marker; second: epoch */
  byte_sink aborted;           /* as in a .txnindex */
  int64_t now_ms, delete_retention_ms, end_of_round;
  batch_verdict verdict;
  uint32_t *places; /* of the records kept, in the records' bytes */
  size_t places_room;
  byte_sink packed; /* what is kept, to be compressed */
  batch_header built;
} filter_pass;

int filter_run(filter_pass *filter);

/* The answer to CLEANER_PACK: the compressed records. */
int filter_packed(filter_pass *filter, const uint8_t *data, size_t size);

/* Of a batch of format 0 or 1, which the caller reads: what it becomes, whether a record stays; then, where
 * one does, the verdict and `packed` are filled by the caller, and a batch of format 2 made of them.
 * CLEANER_PACK as above. At last it is passed. */
void filter_begin_old(filter_pass *filter);
int filter_keeps_old(filter_pass *filter, int64_t offset, const uint8_t *key, int32_t key_size, int has_value,
                     int keep_deletes);
/* Whether tombstones have an end: now and delete.retention.ms are a time, and not beyond all. */
int filter_ends(const filter_pass *filter);

int filter_build_old(filter_pass *filter, int64_t base_offset, int64_t base_timestamp, int append_time,
                     int codec);
int filter_end_old(filter_pass *filter);

void filter_free(filter_pass *filter);

/* One record at the end of `sink`, sizes written as short as can be. */
void put_record(byte_sink *sink, const record_view *record, int64_t timestamp_delta, int32_t offset_delta);

#endif
