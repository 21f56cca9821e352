"""Spark's daemon of Python workers.

It imports what every worker needs before it forks: once, and shared in memory.
"""

import pandas
import pyarrow.compute
from pyspark.daemon import manager

from upheld.impl.spark import batcher, joins, ledger, relay

INHERITED_BY_WORKERS = (pandas, pyarrow.compute, batcher, joins, ledger, relay)

if __name__ == "__main__":
    manager()
