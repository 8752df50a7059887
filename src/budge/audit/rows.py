"""The rows that a model was asked about, and what is at hand beside them while the process lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design
from budge.audit.sources import Source
from budge.errors import InputError, ModelError
from budge.models import Predictor
from budge.stats import Counts
from budge.stats.counts import STATUSES

__all__ = ["Context", "Rows", "check_designed"]


@dataclass(frozen=True)
class Context:
    """What is at hand in the process that ran the audit and is not saved: models, people, interaction model."""

    predictors: Mapping[str, Predictor]
    X: Any
    im: Any
    source: Source
    settlers: dict[str, Any] = field(default_factory=dict, compare=False)  # what proves about each model, made when it is first needed
    known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # numbers behind the answers, made when they are first needed


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that one model was asked about: their labels, what the model answered about them as they are, and what was counted."""

    index: pd.Index
    place: npt.NDArray[np.int64]  # positions in the table of people
    prediction: npt.NDArray[Any]
    units: npt.NDArray[np.int64]  # equal for rows that share their draws
    counts: Counts
    groups: pd.DataFrame  # the columns that the design declares as groups

    def check(self, people: int, design: Design) -> None:
        """Raise a `ValueError` where rows that were read from a file contradict each other, the design or the number of people."""
        self.counts.check()
        counts, size = self.counts, len(self.counts)
        for name, kind in (("place", np.int64), ("units", np.int64), ("prediction", None)):
            column = getattr(self, name)
            if column.shape != (size,) or (kind is not None and column.dtype != kind):
                raise ValueError(f"{name} has the type {column.dtype} and the shape {column.shape}, of {size} rows")
        if len(self.index) != size or len(self.groups) != size:
            raise ValueError(f"there are {size} rows, {len(self.index)} labels and groups of {len(self.groups)}")
        dated: tuple[Any, ...] = (self.index, self.prediction, *(self.groups[c] for c in self.groups))
        for values in dated:
            if getattr(values.dtype, "kind", "") == "M" and not _within_years(pd.DatetimeIndex(values)):
                raise ValueError("a time is not within the years 1 to 9999")
        if size and (self.place[0] < 0 or self.place[-1] >= people or (np.diff(self.place) <= 0).any()):
            raise ValueError(f"rows are not those of different people among {people:,}")
        if list(self.groups.columns) != [column for column, _ in design.groups]:
            raise ValueError(f"groups are {list(self.groups.columns)}, and the design declares {[column for column, _ in design.groups]}")
        check_designed(counts, design)
        try:
            already = np.asarray(design.target.hits(self.prediction, self.prediction), dtype=bool)
        except ModelError:  # answers of another type than the target's
            raise
        except InputError:  # the target was Python code
            return
        if already.shape != (size,) or (design.population == "outside" and already.any()):
            raise ValueError("the audit is about people outside the target, and some have it")


def check_designed(counts: Counts, design: Design) -> None:
    """Raise a `ValueError` where counts that were read from a file are not those of a design."""
    listed, stopped, fixed = counts.is_law("exact"), counts.is_law("sequential"), counts.is_law("sample", "weighted")
    if (counts.n[fixed] != design.draws).any() or (counts.n[stopped] > design.draws).any():
        raise ValueError(f"rows have other numbers of draws than the {design.draws:,} of the design")
    if (stopped.any() and not design.sequential) or (counts.is_law("weighted").any() and design.proposal is None):
        raise ValueError("rows stopped early or have weights, and the design has neither a rule nor a proposal")
    if (fixed.any() and design.sequential) or ((fixed | stopped).any() and design.method == "exact") or (listed.any() and design.method == "sample"):
        raise ValueError("rows are listed, drawn or stopped otherwise than the design does")
    if design.method == "auto" and (counts.n[listed] > design.exact_limit).any():
        raise ValueError(f"rows have more points than the {design.exact_limit:,} that the design lists")
    if counts.proof.any() and not design.prove:
        raise ValueError("rows have proofs, and the design asks for none")
    stays = counts.status == STATUSES.index("fixed")
    if (stays & (counts.hits > 0) & (counts.hits + counts.unresolved < counts.n)).any():
        raise ValueError("people who cannot move have points that hit and others that miss")
    drawn = fixed | stopped
    left = drawn & ((counts.hits == 0) | ((counts.hits == counts.n) & (counts.unresolved == 0))) & (counts.proof == 0)
    if design.prove and left.any():  # each of them has a proof, or the reason why there is none
        raise ValueError("the design asks for proofs, and rows that draws leave open have none")
    if (rule := design.rule) is not None:
        n, hits, lost = counts.n[stopped], counts.hits[stopped], counts.unresolved[stopped]
        surprises = hits + lost if rule.claim == "below" else n - hits
        if ((surprises > rule.accept[n]) & (surprises < rule.give_up[n]) & (n < rule.max_n)).any():
            raise ValueError("rows stopped where the rule of the design does not")


def _within_years(times: pd.DatetimeIndex) -> bool:
    """Return whether times can be written as a date; those beyond are neither shown nor shifted to a zone."""
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[times.unit]
    since = times.asi8[np.flatnonzero(times.notna())]
    return bool(((since >= -62_135_596_800 * per) & (since < 253_402_300_800 * per)).all())
