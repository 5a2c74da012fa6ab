"""A broker beside controllers of Apache Kafka (`process.roles=broker`).

metadata_copy.py and observing.py follow their metadata log, image.py is what it says; controllers.py reaches them,
presence.py is registered with them; roles.py leads and follows what the metadata says, assignments.py tells in which log
directory; forwarding.py and creating.py ask for what only they decide. cluster.py puts it together.
"""
