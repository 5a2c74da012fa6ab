-- Orders that a payment service answers. What it answers 'busy' to is tried again, three times at most.
CREATE STREAM payments (order_id VARCHAR KEY, amount DECIMAL(10, 2), answer VARCHAR, attempts INT)
  WITH (kafka_topic = 'payments', partitions = 2, format = 'JSON');

-- What is no JSON goes as it is where somebody can look at it. One query of those that read payments sees to that.
SET 'errors.dead.letter.queue.topic.name' = 'payments.unreadable';

CREATE STREAM paid WITH (kafka_topic = 'payments.paid') AS
  SELECT order_id, amount FROM payments WHERE answer = 'paid' EMIT CHANGES;

UNSET 'errors.dead.letter.queue.topic.name';
SET 'processing.log' = 'none';

-- For the service to take up again; its answer goes to payments, with the count of attempts.
CREATE STREAM payments_retry WITH (kafka_topic = 'payments.retry') AS
  SELECT order_id, amount, IFNULL(attempts, 1) + 1 AS attempts
  FROM payments WHERE answer = 'busy' AND IFNULL(attempts, 1) < 3 EMIT CHANGES;

CREATE STREAM payments_dead WITH (kafka_topic = 'payments.dead') AS
  SELECT order_id, amount, 'busy after ' + CAST(attempts AS VARCHAR) + ' attempts' AS reason
  FROM payments WHERE answer = 'busy' AND attempts >= 3 EMIT CHANGES;

INSERT INTO payments_dead
  SELECT order_id, amount, 'unknown answer: ' + IFNULL(answer, 'none') AS reason
  FROM payments WHERE answer IS NULL OR answer NOT IN ('paid', 'busy') EMIT CHANGES;

-- How many orders are dead for each reason.
CREATE TABLE dead_by_reason WITH (kafka_topic = 'payments.dead.by.reason') AS
  SELECT reason, COUNT(*) AS orders FROM payments_dead GROUP BY reason EMIT CHANGES;
