"""Reachable points: enumerated exactly, drawn exactly, proved empty.

`prepare` decides who is drawn how; `core` lists configurations; `view`, `cells`, `shapes`, `fibre`, `polytope` and `walks`
draw what is continuous, `rejection` takes the rest; `reacher` does it for many people. `milp` is the paper's integer program (`encoding`
writes it, `solver` solves it), `clash` and `blame` tell why nothing is feasible, `paper` is the paper's sampler.
"""

from budge.reach.draw import enumerate_points, sample_blocks, sample_points, set_size
from budge.reach.prepare import Prepared, prepare_part
from budge.reach.results import PartDiagnostics, ReachableSample, ReachableSet, SampleBlock
from budge.reach.status import broken_at

__all__ = [
    "PartDiagnostics",
    "Prepared",
    "ReachableSample",
    "ReachableSet",
    "SampleBlock",
    "broken_at",
    "enumerate_points",
    "prepare_part",
    "sample_blocks",
    "sample_points",
    "set_size",
]
