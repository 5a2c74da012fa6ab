"""Following the leaders of other brokers, and asking the controller for changes of the ISR; imported in a cluster only.

replication.py is what the broker tells (cluster/zookeeper/parts.py has its face), fetching.py one connection to a leader,
isr.py the one to the controller, requests.py which versions inter.broker.protocol.version means, quotas.py what
replication may take. The rules are in pure/following and pure/replication.py.
"""
