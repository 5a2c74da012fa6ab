"""The controller of a cluster on ZooKeeper, as Kafka 3.9 has it: who leads which partition, what brokers are told.

A pure machine: events go in one at a time (events.py), intents come out (intents.py), and what ZooKeeper keeps is read
and written through a store (store.py). Everything is a generator, which the host drives: it does each intent that is
yielded and sends back what ZooKeeper answered. Nothing here knows paths, JSON, sockets or the time.

machine.py     stands for election, and gives each event to the term of office, if there is one
term.py        a term: what a controller knows from its election to its end, and the parts that decide
context.py     the brokers, topics, partitions and replicas as the controller knows them
partitions.py, replicas.py   the two tables of states, and what follows from a change of state
elections.py   who leads next
batches.py     what one round of changes tells the brokers
brokers.py, topics.py, deletions.py, reassignments.py, balance.py, isr.py   what happens to brokers, topics, partitions

Invariants: each write is conditional on the controller epoch of this term, and each partition's state on its version;
what is decided is written first and told to brokers then, so that whoever is elected next finds all of it.
"""
