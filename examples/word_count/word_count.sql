-- The word count: lines of text in, for each word how often it has come by now.
CREATE STREAM lines (line VARCHAR) WITH (kafka_topic = 'lines', partitions = 2, value_format = 'KAFKA');

CREATE STREAM words WITH (kafka_topic = 'words', value_format = 'JSON') AS
  SELECT EXPLODE(REGEXP_SPLIT_TO_ARRAY(LCASE(line), '\W+')) AS word FROM lines EMIT CHANGES;

CREATE TABLE word_count WITH (kafka_topic = 'word_count', value_format = 'JSON') AS
  SELECT word, COUNT(*) AS count FROM words WHERE LEN(word) > 0 GROUP BY word EMIT CHANGES;
