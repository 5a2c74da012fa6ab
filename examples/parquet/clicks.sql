-- Clicks as a website sends them: what takes long, with the day that it belongs to.
CREATE STREAM clicks (who VARCHAR KEY, page VARCHAR, ms INT, at BIGINT)
  WITH (kafka_topic = 'clicks', partitions = 2, key_format = 'KAFKA', value_format = 'JSON');

CREATE STREAM slow_clicks WITH (kafka_topic = 'clicks.slow') AS
  SELECT who, page, ms, FORMAT_TIMESTAMP(FROM_UNIXTIME(at), 'yyyy-MM-dd', 'UTC') AS day
  FROM clicks WHERE ms >= 500 EMIT CHANGES;
