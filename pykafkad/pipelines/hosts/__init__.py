"""What runs plans: the same operators everywhere.

local.py is a plain loop; spark.py runs a plan's stages in transformWithState, as batches; spark_streaming.py keeps them
going over topics, with sink.py writing each batch once.
"""
