"""Streams and tables over topics in SQL, as ksqlDB says them.

syntax/ reads statements, catalog.py knows what they made, analysis/ what they mean, plan/ and hosts/ run it. The broker
imports nothing of this, and this nothing of the broker's rooms but its client, the helpers of tools/ and the record codec
(import-linter has a contract).
"""

from pykafkad.pipelines.errors import StatementError

__all__ = ["StatementError"]
