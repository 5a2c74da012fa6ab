/* Records out of decompressed bytes as they come. See batch_records.h. */
#include "batch_varint.h"

enum stream_state {
  AT_SIZE,
  AT_ATTRIBUTES,
  AT_TIMESTAMP,
  AT_OFFSET,
  AT_KEY_SIZE,
  IN_KEY,
  AT_VALUE_SIZE,
  IN_VALUE,
  AT_HEADER_COUNT,
  AT_HEADER_KEY_SIZE,
  IN_HEADER_KEY,
  AT_HEADER_VALUE_SIZE,
  IN_HEADER_VALUE,
  IN_WRONG /* the rest of a record that is wrong, for a strict reader */
};

void record_stream_begin(record_stream *stream, int32_t count, int strict) {
  memset(stream, 0, sizeof *stream);
  stream->count = count;
  stream->strict = strict;
  stream->state = AT_SIZE;
}

/* Most records lie within one piece: read those at once. RECORDS_NEED_MORE leaves all to the step-wise
 * reader, which also finds out what is wrong where this one gives up. */
static inline int skim_record(const uint8_t *at, const uint8_t *end, record_view *record) {
  int32_t size;
  header_view header;
  if (!(at = read_varint(at, end, &size)) || !(at = read_fields(at, end, record)))
    return RECORDS_NEED_MORE;
  if (record->header_count < 0)
    return RECORDS_INVALID;
  for (int32_t left = record->header_count; left > 0; left--)
    if (!(at = record_read_header(at, end, &header)))
      return RECORDS_NEED_MORE;
  record->end = at;
  return RECORDS_OK;
}

/* Takes bytes of a number until it is whole. 1 when it is, 0 when it goes on, -1 when it is too long. */
static int take_number(record_stream *stream, const uint8_t **at, const uint8_t *end, int limit,
                       uint64_t *value) {
  while (*at < end) {
    uint8_t byte = *(*at)++;
    stream->varint |= (uint64_t)(byte & 0x7f) << (7 * stream->shift++);
    if (byte < 0x80) {
      *value = stream->varint;
      stream->odd |= byte == 0 && stream->shift > 1;
      stream->varint = 0;
      stream->shift = 0;
      return 1;
    }
    if (stream->shift == limit)
      return -1;
  }
  return 0;
}

static void next_header(record_stream *stream) {
  stream->state = stream->record.header_count-- > 0 ? AT_HEADER_KEY_SIZE : AT_SIZE;
}

static void skipped(record_stream *stream) {
  switch (stream->state) {
  case IN_KEY:
    stream->state = AT_VALUE_SIZE;
    break;
  case IN_VALUE:
    stream->state = AT_HEADER_COUNT;
    break;
  case IN_HEADER_KEY:
    stream->state = AT_HEADER_VALUE_SIZE;
    break;
  case IN_WRONG:
    break;
  default:
    next_header(stream);
  }
}

static void skip_next(record_stream *stream, int32_t size, int state) {
  stream->odd |= size < -1;
  stream->skip = size > 0 ? size : 0;
  stream->state = state;
  if (size <= 0)
    skipped(stream);
}

/* A number has been read: what does it mean, and what comes next? */
static int accept_number(record_stream *stream, uint64_t number) {
  record_view *record = &stream->record;
  int32_t value = unzigzag((uint32_t)number);
  stream->odd |= stream->state > AT_OFFSET && number > UINT32_MAX;
  switch (stream->state) {
  case AT_SIZE: /* compared with what follows by a strict reader only, as in Kafka */
    if (stream->strict && value < 0)
      return RECORDS_INVALID;
    stream->left = value;
    stream->state = AT_ATTRIBUTES;
    break;
  case AT_TIMESTAMP:
    record->timestamp_delta = unzigzag_long(number);
    stream->state = AT_OFFSET;
    break;
  case AT_OFFSET:
    record->offset_delta = value;
    stream->state = AT_KEY_SIZE;
    break;
  case AT_KEY_SIZE:
    record->key_size = value;
    skip_next(stream, value, IN_KEY);
    break;
  case AT_VALUE_SIZE:
    record->value_size = value;
    skip_next(stream, value, IN_VALUE);
    break;
  case AT_HEADER_COUNT:
    if (value < 0)
      return RECORDS_INVALID;
    record->header_count = value;
    next_header(stream);
    break;
  case AT_HEADER_KEY_SIZE:
    if (value < 0)
      return RECORDS_INVALID;
    skip_next(stream, value, IN_HEADER_KEY);
    break;
  default:
    skip_next(stream, value, IN_HEADER_VALUE);
  }
  return RECORDS_OK;
}

static int is_skipping(int state) {
  return state == IN_KEY || state == IN_VALUE || state == IN_HEADER_KEY || state == IN_HEADER_VALUE ||
         state == IN_WRONG;
}

/* One step of the step-wise reader: a field, or as much of it as there is. */
static int step(record_stream *stream, const uint8_t **at, const uint8_t *end) {
  if (stream->state == AT_ATTRIBUTES) {
    ++*at;
    stream->state = AT_TIMESTAMP;
    return RECORDS_OK;
  }
  if (is_skipping(stream->state)) {
    int64_t here = stream->skip < end - *at ? stream->skip : end - *at;
    *at += here;
    stream->skip -= here;
    if (stream->skip == 0)
      skipped(stream);
    return RECORDS_OK;
  }
  uint64_t number;
  int taken = take_number(stream, at, end, stream->state == AT_TIMESTAMP ? MAX_VARLONG : MAX_VARINT, &number);
  if (taken < 0)
    return RECORDS_INVALID;
  return taken ? accept_number(stream, number) : RECORDS_OK;
}

static int between_records(const record_stream *stream) {
  return stream->state == AT_SIZE && stream->shift == 0;
}

/* What a strict reader makes of a step: a field that is wrong, or does not fit the record's size, is told
 * when the record has been read to its end. */
static int judge(record_stream *stream, int status) {
  if (stream->state == AT_SIZE && stream->shift > 0) /* in the size itself, or it is too long */
    return status;
  int ended = between_records(stream);
  if (status == RECORDS_OK && stream->state != IN_WRONG && (ended ? !stream->left : stream->left > 0))
    return RECORDS_OK;
  if (stream->left <= 0)
    return RECORDS_INVALID;
  stream->state = IN_WRONG;
  stream->skip = stream->left;
  return RECORDS_OK;
}

int record_stream_step(record_stream *stream, const uint8_t **at, const uint8_t *end) {
  const uint8_t *from = *at;
  int in_body = stream->state != AT_SIZE;
  if (stream->strict && in_body && stream->left < end - *at)
    end = *at + stream->left;
  int status = step(stream, at, end);
  if (stream->strict) {
    stream->left -= in_body ? *at - from : 0;
    status = judge(stream, status);
  }
  if (status != RECORDS_OK)
    return -1;
  return between_records(stream);
}

int record_stream_at_key(const record_stream *stream) {
  return stream->state == AT_KEY_SIZE && stream->shift == 0;
}

/* A record that lies within these bytes, at once. RECORDS_NEED_MORE leaves it to the steps. */
static inline int whole_record(const record_stream *stream, const uint8_t *at, const uint8_t *end,
                               record_view *record) {
  if (!stream->strict)
    return skim_record(at, end, record);
  int status = record_read(at, end, record);
  return status == RECORDS_LONG_VARINT ? RECORDS_INVALID : status;
}

int record_stream_next(record_stream *stream, const uint8_t **at, const uint8_t *end, record_view *record) {
  if (*at < end && between_records(stream)) {
    int status = whole_record(stream, *at, end, record);
    if (status == RECORDS_OK)
      *at = record->end;
    if (status != RECORDS_NEED_MORE)
      return status;
  }
  while (*at < end) {
    int ended = record_stream_step(stream, at, end);
    if (ended < 0)
      return RECORDS_INVALID;
    if (ended) {
      *record = stream->record;
      return RECORDS_OK;
    }
  }
  return RECORDS_NEED_MORE;
}

int record_stream_feed(record_stream *stream, const uint8_t *data, size_t size, const record_rules *rules,
                       record_tally *tally) {
  const uint8_t *at = data, *end = data + size;
  while (at < end) {
    record_view record;
    if (tally->seen == stream->count)
      return RECORDS_REMAINING;
    int status = record_stream_next(stream, &at, end, &record);
    if (status == RECORDS_NEED_MORE)
      break;
    if (status != RECORDS_OK)
      return status;
    record_check(&record, rules, tally);
  }
  return tally->no_memory ? RECORDS_NO_MEMORY : RECORDS_OK;
}

int record_stream_end(const record_stream *stream, const record_tally *tally) {
  if (stream->count < 0)
    return RECORDS_NEGATIVE_COUNT;
  return tally->seen < stream->count ? RECORDS_PREMATURE_END : tally_status(tally);
}
