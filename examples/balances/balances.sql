-- What has happened to accounts: the only truth. Everything else follows from it and can be made again.
CREATE STREAM account_events (
  account VARCHAR KEY, event VARCHAR, amount DECIMAL(12, 2)
) WITH (kafka_topic = 'account.events', partitions = 2, format = 'JSON');

-- Every event as what it adds to the balance.
CREATE STREAM account_changes WITH (kafka_topic = 'account.changes') AS
  SELECT account, event,
         CASE WHEN event = 'deposited' THEN amount WHEN event = 'withdrawn' THEN amount * -1 END AS change
  FROM account_events WHERE event IN ('deposited', 'withdrawn') AND amount > 0 EMIT CHANGES;

CREATE TABLE balances WITH (kafka_topic = 'account.balances') AS
  SELECT account, SUM(change) AS balance, COUNT(*) AS events
  FROM account_changes GROUP BY account EMIT CHANGES;

-- Accounts while they owe something: one that is even again is deleted from this table.
CREATE TABLE overdrawn WITH (kafka_topic = 'account.overdrawn') AS
  SELECT account, balance FROM balances WHERE balance < 0 EMIT CHANGES;
