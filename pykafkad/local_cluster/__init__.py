"""A cluster on one machine: ZooKeeper and some brokers, each a process of its own, in one directory.

    DIR/
        cluster.json                where ZooKeeper is, and which brokers there are, at which ports
        up.pid                      locked by the `pykafkad cluster up` that waits for its end
        zookeeper/                  zoo.cfg, zookeeper.log, pid, data/; absent where ZooKeeper is somebody else's
        broker-0/                   server.properties, broker.log, pid, data/
        broker-1/ ...

Every command finds the processes by these files, so that each may come from a shell of its own. `pykafkad cluster` and
testing.Cluster are the two doors. A process that was started lives until it is ended by one of them.
"""
