"""The coordinator runtime: what all coordinators have in common, whatever their machines are about.

A coordinator is a CoordinatorRuntime (runtime.py) over an internal topic. Each partition of the topic has a Shard
(shard.py) with a Machine (machine.py, kind.py) of its own, whose state is what the partition's log says. A request goes
to the shard of its key. The machine returns what is to be written, answered and done later (pure/effects.py), and the
shard does it: its PartitionWriter (writing.py) appends the records, and its Timers (timers.py) call the machine again.
Loading (loading.py) replays a log into a new machine. loop.py is what the coordinators of a broker share of its loop.
"""
