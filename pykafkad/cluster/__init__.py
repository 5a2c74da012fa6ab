"""What brokers and topics exist: the image of the metadata log, the log itself, and the controller that
changes both.
"""
