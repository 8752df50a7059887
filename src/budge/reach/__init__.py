"""Reachable points: enumerated exactly, drawn exactly, proved empty.

`prepare` decides for a block of people who is drawn how. `core` lists configurations, `ladder` counts wide whole numbers, `diagram` counts what is too large to
list; `fibres`, `room` and `polytope` hold what is continuous; `piece` draws from all of these by the words of `streams`, `proposed` draws what is left, and
`reacher` puts the parts together. `blame` tells why nothing is feasible.
"""

from budge.reach.draw import enumerate_points, sample_blocks, sample_points, set_size
from budge.reach.results import PartDiagnostics, ReachableSample, ReachableSet, SampleBlock
from budge.reach.status import broken_at

__all__ = [
    "PartDiagnostics",
    "ReachableSample",
    "ReachableSet",
    "SampleBlock",
    "broken_at",
    "enumerate_points",
    "sample_blocks",
    "sample_points",
    "set_size",
]
