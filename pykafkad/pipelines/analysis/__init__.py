"""What statements mean, said without data and without a host: names, keys, schemas, plans, and every refusal.

sources.py is what a CREATE STREAM | TABLE with columns declares, query.py what a SELECT means (relations.py, joins.py,
grouping.py and projection.py are its parts), sinks.py where its result goes, session.py the statements one after another.
"""
