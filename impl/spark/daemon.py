"""Spark's daemon of Python workers.

It imports what every worker needs before it forks: once, and shared in memory.
"""

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark.daemon import manager

from upheld.impl.spark import batcher, joins, ledger, relay  # noqa: F401

if __name__ == "__main__":
    manager()
