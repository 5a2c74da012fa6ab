-- Each slow click once in files of Parquet, a directory a day, and how many there were of each page.
CREATE STREAMING TABLE slow_clicks USING kafka TBLPROPERTIES ('topic' = 'clicks.slow');

CREATE STREAMING TABLE slow (who STRING, page STRING, ms INT, day STRING) PARTITIONED BY (day)
  TBLPROPERTIES ('compression' = 'zstd') AS
  SELECT CAST(key AS STRING) AS who, click.page, click.ms, click.day
  FROM (SELECT key, from_json(CAST(value AS STRING), 'PAGE STRING, MS INT, DAY STRING') AS click
        FROM STREAM(slow_clicks));

CREATE MATERIALIZED VIEW slow_pages AS SELECT page, COUNT(*) AS clicks, MAX(ms) AS ms FROM slow GROUP BY page;
