"""The reference design in PySpark on the adapter protocol."""

import signal
import sys

from streamgate.adapter import serve
from streamgate.impl.spark.runtime import Spark

if __name__ == "__main__":
    design = Spark()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        serve(design)
    finally:  # asked to end by a signal: finish the batch and leave no transaction open
        if hasattr(design, "stream"):
            design.close()
