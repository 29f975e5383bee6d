"""How Spark finds the data source by itself: it looks for `DefaultSource` in every top-level module named `pyspark_…`.

`spark.read.format("ropewalk")` works in any session whose Python has this package and the extra `ropewalk[spark]`.
"""

from ropewalk.spark.source import RopewalkSource as DefaultSource

__all__ = ["DefaultSource"]
