"""Projects of Spark's declarative pipelines: a directory with spark-pipeline.yml and SQL files, run with Kafka in them.

    spec          what spark-pipeline.yml says
    definitions   the statements of the files, parsed by Spark: tables, views, flows
    graph         what they read of each other, as data frames
    running       the flows as streaming queries, once or for as long as is asked

Spark's own runner ends after each run and has no Kafka sink in SQL. Here a streaming table USING kafka is a topic, read
by STREAM(name) and written by flows; other tables are files below the spec's storage, where the checkpoints are, too.
"""
