-- Positions of trucks, one line of text each; the key is the truck.
CREATE STREAM truck_position_s (
  truck_id VARCHAR KEY, ts BIGINT, driver_id VARCHAR, route_id BIGINT,
  event_type VARCHAR, latitude DOUBLE, longitude DOUBLE
) WITH (kafka_topic = 'truck_position', partitions = 4, key_format = 'KAFKA', value_format = 'DELIMITED',
        timestamp = 'ts');

-- Drivers as the database has them: what poll_drivers.py writes.
CREATE TABLE driver_t (driver_id VARCHAR PRIMARY KEY, first_name VARCHAR, last_name VARCHAR)
  WITH (kafka_topic = 'drivers', partitions = 4, key_format = 'KAFKA', value_format = 'JSON');

CREATE STREAM dangerous_driving_s
  WITH (kafka_topic = 'dangerous_driving', value_format = 'JSON') AS
  SELECT * FROM truck_position_s WHERE event_type != 'Normal' EMIT CHANGES;

-- A driver whom the database does not have, or not yet, is null.
CREATE STREAM dangerous_driving_and_driver_s
  WITH (kafka_topic = 'dangerous_driving_and_driver', value_format = 'JSON') AS
  SELECT d.driver_id AS driver_id, t.first_name AS first_name, t.last_name AS last_name,
         d.truck_id AS truck_id, d.event_type AS event_type
  FROM dangerous_driving_s d
  LEFT JOIN driver_t t ON d.driver_id = t.driver_id EMIT CHANGES;

-- How often what has happened in each minute, anew every half minute.
CREATE TABLE event_type_by_minute_t
  WITH (kafka_topic = 'event_type_by_minute', value_format = 'JSON') AS
  SELECT event_type, COUNT(*) AS count
  FROM dangerous_driving_s WINDOW HOPPING (SIZE 60 SECONDS, ADVANCE BY 30 SECONDS)
  GROUP BY event_type EMIT CHANGES;
