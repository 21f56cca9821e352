"""Reads whatever lies in the log, also what was aborted upstream.

The mistake is to take the Java client's default for isolation.level. It shows where the input holds
an aborted transaction.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class ReadsUncommitted(Plain):
    hello = Plain.hello | {"name": "broken/reads_uncommitted"}
    isolation = "read_uncommitted"


serve(ReadsUncommitted())
