"""Reachable points: enumerated exactly, drawn exactly, proved empty.

`prepare` decides for a block of people who is drawn how. `core` lists configurations, `ladder` counts wide whole numbers; what is too large to list is
written as rows and rules over whole numbers (`axes`, `written`), built into a diagram (`states`) and counted (`diagram`). `view` writes features as forms in
what is open; `fibres`, `room` and `polytope` hold what is continuous. `piece` draws from all of these by the words of `streams`, `proposed` draws what is left,
`downstream` adds effects, and `reacher` puts the parts together. `status` tells what a start breaks and why nothing is feasible.
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
