"""People as a stream: a Parquet data set, a CSV file, a Dask DataFrame, or an iterator of tables, read part by part by whoever works on them.

A part is a small value that can be sent anywhere and read there. Which people it holds depends on the data and on the size of a part alone, so that a run
that was started on one machine goes on with the same parts on another.
"""

from budge.people.people import PART, People, is_stream
from budge.people.stream import Part

__all__ = ["PART", "Part", "People", "is_stream"]
