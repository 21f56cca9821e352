"""The reference design in PySpark, on the adapter protocol or by `spark-submit`."""

from streamgate.adapter import serve
from streamgate.impl.spark.runtime import Spark

if __name__ == "__main__":
    serve(Spark())
