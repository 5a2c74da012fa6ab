"""Coordinators: run pure machines on top of the partitions of the internal topics that hold their state.

runtime/ is the part that knows no machine; groups.py and group_machine.py are the coordinator of groups.
"""
