/* Records encoded again. See batch_records.h. */
#include "batch_varint.h"

/* A larger record that does not lie within one piece is passed on as it comes rather than kept until it is
 * whole. */
#define LONG_RECORD (1 << 20)

static void write_record(byte_sink *sink, int64_t timestamp_delta, int32_t offset_delta,
                         const record_view *record) {
  size_t start = sink->size;
  sink_record_head(sink, timestamp_delta, offset_delta);
  sink_nullable(sink, record->key, record->key_size);
  sink_nullable(sink, record->value, record->value_size);
  sink_varlong(sink, record->header_count);
  header_view header = {0};
  const uint8_t *at = record->headers;
  for (int32_t left = record->header_count; left > 0; left--) {
    at = record_read_header(at, record->end, &header);
    sink_nullable(sink, header.key, header.key_size);
    sink_nullable(sink, header.value, header.value_size);
  }
  sink_close_record(sink, start, 0);
}

static int is_long(const uint8_t *at, const uint8_t *end) {
  int32_t size;
  return read_varint(at, end, &size) && size > LONG_RECORD;
}

/* Which time the next record has in the new batch. */
static int64_t new_delta(record_rewriter *rewriter, const record_tally *tally, const record_view *record) {
  int64_t timestamp = record_timestamp(tally, record);
  if (tally->seen == 0)
    rewriter->base_timestamp = timestamp;
  if (timestamp < NO_TIMESTAMP)
    rewriter->negative_timestamp = 1;
  return (int64_t)((uint64_t)timestamp - (uint64_t)rewriter->base_timestamp);
}

/* Once anything is wrong, reading goes on only to find what else is. */
static int is_kept(const record_rewriter *rewriter, const record_tally *tally) {
  return !tally->fault_count && !rewriter->negative_timestamp;
}

/* Size, times and offset of a long record are written anew and the bytes behind them as they are: that is the
 * same, unless somebody has written a number in more bytes than it needs (and then it is refused, which Kafka
 * does not). */
static int pass_on(record_rewriter *rewriter, const uint8_t **at, const uint8_t *end,
                   const record_rules *rules, record_tally *tally, byte_sink *sink) {
  record_stream *stream = &rewriter->stream;
  while (*at < end) {
    const uint8_t *from = *at;
    int ended = record_stream_step(stream, at, end);
    if (ended < 0)
      return RECORDS_INVALID;
    if (rewriter->in_tail && is_kept(rewriter, tally))
      sink_bytes(sink, from, (size_t)(*at - from));
    if (!rewriter->in_tail && record_stream_at_key(stream)) {
      int64_t delta = new_delta(rewriter, tally, &stream->record);
      size_t start = sink->size;
      rewriter->in_tail = 1;
      stream->odd = 0;
      sink_record_head(sink, delta, tally->seen);
      sink_close_record(sink, start, (size_t)stream->left);
    }
    if (ended) {
      rewriter->in_tail = rewriter->is_passing = 0;
      if (stream->odd)
        return RECORDS_INVALID;
      record_check(&stream->record, rules, tally);
      return RECORDS_OK;
    }
  }
  return RECORDS_NEED_MORE;
}

static int rewrite_whole(record_rewriter *rewriter, const uint8_t **at, const uint8_t *end,
                         const record_rules *rules, record_tally *tally, byte_sink *sink) {
  record_view record;
  int status = record_read(*at, end, &record);
  if (status != RECORDS_OK)
    return status;
  int32_t index = tally->seen;
  int64_t delta = new_delta(rewriter, tally, &record);
  record_check(&record, rules, tally);
  if (is_kept(rewriter, tally))
    write_record(sink, delta, index, &record);
  *at = record.end;
  return RECORDS_OK;
}

int record_rewriter_feed(record_rewriter *rewriter, const uint8_t *data, size_t size,
                         const record_rules *rules, record_tally *tally, byte_sink *sink, size_t *used) {
  const uint8_t *at = data, *end = data + size;
  while (tally->seen < rewriter->count) {
    int status = rewriter->is_passing ? pass_on(rewriter, &at, end, rules, tally, sink)
                                      : rewrite_whole(rewriter, &at, end, rules, tally, sink);
    *used = (size_t)(at - data);
    if (sink->failed || tally->no_memory)
      return RECORDS_NO_MEMORY;
    if (status == RECORDS_NEED_MORE && !rewriter->is_passing && is_long(at, end)) {
      rewriter->is_passing = 1;
      record_stream_begin(&rewriter->stream, rewriter->count, 1);
      continue;
    }
    if (status == RECORDS_NEED_MORE)
      return status;
    if (status != RECORDS_OK)
      return record_failure(status, at, end, rewriter->compressed);
  }
  *used = (size_t)(at - data);
  return at == end ? RECORDS_OK : RECORDS_REMAINING;
}
