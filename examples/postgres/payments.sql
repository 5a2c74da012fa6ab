-- What customers have paid, in cents. Each result says which record it follows from: that makes it countable once.
CREATE STREAM payments (customer VARCHAR KEY, cents BIGINT, state VARCHAR)
  WITH (kafka_topic = 'payments', partitions = 4, key_format = 'KAFKA', value_format = 'JSON');

CREATE STREAM booked WITH (kafka_topic = 'payments.booked') AS
  SELECT customer, cents, ROWPARTITION AS source_partition, ROWOFFSET AS source_offset
  FROM payments WHERE state = 'paid' EMIT CHANGES;
