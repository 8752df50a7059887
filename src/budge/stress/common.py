"""What stress tests share: the people and the model that are asked, and results that can be run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import Answers, Asker, ask_starts
from budge.audit.design import Design, Execution, executed
from budge.audit.drift import MEND, Heard, HeardAsker, confirmed
from budge.audit.failing import answered, check_answered, unanswered
from budge.audit.run import chosen_people, nobody_left, warn
from budge.audit.sources import BoolArray, TableSource, make_source
from budge.errors import DesignError, IncompleteError, InputError, Problem, one_line
from budge.interaction import InteractionModel
from budge.models import Predictor, as_predictor
from budge.stats import Claims, Counts, claim
from budge.stats.claims import Question

__all__ = ["Asked", "StressAsker", "Stressed", "allowed", "claims_at", "distribution", "noted", "notes_of", "without_journal"]


class StressAsker(HeardAsker):
    """The asker of a stress test, which keeps no journal: a model that fails on everything ends it."""

    def __call__(self, rows: Any, before: npt.NDArray[Any]) -> Answers:
        """Ask about points, and keep what is needed at the end."""
        found = super().__call__(rows, before)
        if found.down:
            raise IncompleteError(f"the model failed on everything: {found.causes[0]}", where=self.name, remedy=MEND)
        return found


@dataclass(frozen=True)
class Asked:
    """The people, the model, the design with its target read, the model's answers about the people, and who is asked about."""

    source: TableSource
    predictor: Predictor
    design: Design
    before: npt.NDArray[Any]
    chosen: BoolArray
    heard: Heard = field(default_factory=Heard)

    @classmethod
    def of(cls, model: Any, X: Any, im: InteractionModel, design: Design, *, check: bool, proves: bool = False) -> Asked:
        """Read people and model, and ask about the people as they are; `proves`: the test uses proofs."""
        if design.prove and not proves:
            remedy = "leave prove out; minimal_relaxations and audit take it"
            raise DesignError("sets are compared by listing and draws, not by proofs", where="prove", got=True, remedy=remedy)
        if design.sequential or design.proposal is not None:
            got = "sequential" if design.sequential else "proposal"
            raise DesignError("sets are compared by a fixed number of draws from each", where=got, got=getattr(design, got), remedy=f"leave {got} out")
        source = make_source(im, X, design.on_invalid)
        assert isinstance(source, TableSource)
        predictor = as_predictor(model)
        design = design.aimed(predictor.classes if predictor.output == "label" else None)
        before, _ = ask_starts({"model": predictor}, source.starts(), design.target, seed=design.seed, table=True, check=check)
        chosen = chosen_people(design, source, before["model"])
        warn(nobody_left(design, int(chosen.sum()), len(chosen)))
        return cls(source, predictor, design, before["model"], chosen)

    @property
    def ask(self) -> HeardAsker:
        """What asks the model about points."""
        return StressAsker.hearing(Asker.of("model", self.predictor, self.design.target, self.before), self.heard)

    def checked(self, counts: Sequence[Counts], check: bool | str, result: Any) -> tuple[Problem, ...]:
        """Raise an error, with the result attached, where too many points have no answer or the model answers otherwise now; return notes."""
        check_answered(answered(counts), self.design, list(self.heard.causes), result)
        lost = unanswered({"model": answered(counts)}, {"model": list(self.heard.causes)}, remedy=MEND)
        return (*lost, *confirmed(self.ask, {"model": self.predictor}, self.source.starts(), self.before, check, result))


class Stressed:
    """Base of results that can be run again on other draws."""

    info: Mapping[str, Any]
    rerun: Callable[[Mapping[str, Any]], Any] | None
    plot: Any
    shown: ClassVar[str]  # the table that a notebook shows

    def again(self, **changes: Any) -> Self:
        """Return the same analysis on fresh draws; more draws of the same stream after looking are refused."""
        if self.rerun is None:
            raise InputError("the model and the people are not at hand", remedy="run it anew")
        stream = {"seed": self.info["seed"], "purpose": self.info["purpose"]}
        if all(changes.get(name, value) == value for name, value in stream.items()):
            raise DesignError(
                "more draws after looking: the same stream begins with the draws that were seen, and drawing on until something shows breaks alpha",
                got=stream,
                remedy="give another seed; the new result then stands by itself",
            )
        found: Self = self.rerun(changes)
        return found

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=getattr(self, self.shown), figure=self.plot)


def without_journal(execution: Execution | None) -> Execution:
    """Return the execution of a stress test, which keeps no journal."""
    found = executed(execution, {})
    if found.journal is not None:
        raise DesignError("a stress test keeps no journal", where="journal", got=found.journal, remedy="leave it out; audits keep one")
    return found


def noted(info: Mapping[str, Any], notes: Iterable[Problem | str]) -> dict[str, Any]:
    """Return what is known of a result, with notes if there are any."""
    said = list(dict.fromkeys(map(str, notes)))
    return {**info, "notes": said} if said else dict(info)


def notes_of(info: Mapping[str, Any]) -> list[str]:
    """Return the notes of a result as lines."""
    return [f"Note: {note}." for note in info.get("notes", ())]


def claims_at(counts: Counts, design: Design, alpha: float) -> Claims:
    """Return what may be claimed of counts at another error than the design's."""
    return claim(counts, Question(design.threshold, alpha))


def allowed(
    im: InteractionModel, start: npt.NDArray[np.float64], points: npt.NDArray[np.float64], columns: npt.NDArray[np.intp] | None = None
) -> BoolArray:
    """Return which points an interaction model allows from a start, by the definition; with `columns` only the parts that hold one of these are looked at."""
    place = {f.name: j for j, f in enumerate(im.features)}
    good = np.ones(len(points), dtype=bool)
    some = None if columns is None else set(columns.tolist())
    for part in im.parts:
        if some is not None and some.isdisjoint(place[name] for name in part.names):
            continue
        x = {name: float(start[place[name]]) for name in part.names}
        moved = {name: np.nan_to_num(points[:, place[name]] - start[place[name]]) for name in part.names}
        good &= np.broadcast_to(part.feasible(x, moved), good.shape)
    return good


def distribution(rho: pd.Series) -> pd.DataFrame:
    """Return the share of people with responsiveness up to each value."""
    values, counts = np.unique(rho.dropna().to_numpy(), return_counts=True)
    return pd.DataFrame({"rho": values, "share": np.cumsum(counts) / max(int(counts.sum()), 1)})
