"""Why is somebody stuck? The smallest sets of constraints whose joint removal lets the prediction change, and what blocks them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design, Execution, designed, given
from budge.audit.failing import answered, check_answered
from budge.audit.proving import Settler, settlers_of
from budge.audit.sources import TableSource, make_source
from budge.audit.summary import heads
from budge.errors import BudgeError, DesignError
from budge.interaction import InteractionModel
from budge.models.contained import kept_seeds
from budge.stats._checks import whole
from budge.stats.counts import STATUSES, Counts
from budge.stress.common import Asked, noted, notes_of, without_journal
from budge.stress.relaxations import Relaxation, resolve
from budge.stress.tally import tally

__all__ = ["MinimalRelaxations", "hitting_sets", "minimal_relaxations"]

Names = frozenset[str]
BATCH = 24  # joint models compared at a time


@dataclass(frozen=True)
class MinimalRelaxations:
    """For each stuck person, the smallest sets of relaxations that let the prediction change.

    `table` has one row per person and set: `relaxations`, `size`, and `proven`: the witness is real in any case, and it is
    proved that no part of the set would do (everything was listed, or settled by the model's structure); else that was found by draws. `blocking`
    gives for each person the smallest sets that meet all of theirs: while one of these is kept whole, no set found lets them out.
    """

    table: pd.DataFrame
    stuck: tuple[Any, ...]
    without: tuple[Any, ...]
    proven_without: tuple[Any, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    def of(self, person: Any) -> tuple[Names, ...]:
        """The minimal sets of one person, the smallest first."""
        return tuple(self.table.loc[[person], "relaxations"]) if person in self.table.index else ()

    def blocking(self, person: Any) -> tuple[Names, ...]:
        """The minimal sets of relaxations that meet every minimal set of this person."""
        return hitting_sets(self.of(person))

    @property
    def counts(self) -> pd.Series:
        """For how many stuck people each set is minimal, the most frequent first."""
        named = self.table["relaxations"].map(lambda s: " + ".join(sorted(s)))
        return named.value_counts()

    def __str__(self) -> str:
        most = self.info["max_size"]
        tried = "relaxations were tried one by one" if most == 1 else f"up to {most} relaxations were tried jointly"
        unsure = f" ({self.info['unproved']:,} not proved: by draws, or with answers missing)" if self.info["unproved"] else ""
        lines = [f"Stuck: {heads(len(self.stuck))}{unsure}; {tried}."]
        for text, count in self.counts.head(5).items():
            lines.append(f"{text}: minimal for {heads(count)}.")
        if self.without:
            proved = f" (proved for {len(self.proven_without):,})" if self.proven_without else ""
            lines.append(f"Stuck under every set tried: {heads(len(self.without))}{proved}.")
        drawn = int((~self.table["proven"]).sum()) if len(self.table) else 0
        if drawn:
            sets = "1 set was" if drawn == 1 else f"{drawn:,} sets were"
            lines.append(f"{sets} found by draws, or with answers missing: a smaller one may have been missed.")
        return "\n".join([*lines, *notes_of(self.info)])

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        rows = [
            {"person": label, "relaxations": sorted(row["relaxations"]), "proven": bool(row["proven"])}
            for label, row in self.table.iterrows()
        ]
        return {
            "info": dict(self.info), "stuck": list(self.stuck), "table": rows, "without": list(self.without),
            "blocking": {str(p): [sorted(b) for b in self.blocking(p)] for p in self.stuck},
        }  # fmt: skip


@kept_seeds()
def minimal_relaxations(
    model: Any,
    X: Any,
    im: InteractionModel,
    relaxations: Any = None,
    *,
    target: Any = None,
    max_size: int = 3,
    n: int | None = None,
    seed: int | None = None,
    population: Any = None,
    prove: bool | None = None,
    design: Design | None = None,
    execution: Execution | None = None,
) -> MinimalRelaxations:
    """Find the smallest sets of relaxations whose joint removal lets a stuck person's prediction change, all of them up to `max_size`.

    A person is stuck if no point seen under `im` attains the target. Sets larger than one that works are not tried. With `prove`, what draws leave open
    is settled by the model's structure: who is stuck, and whom a set lets out.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature(name, "binary", actionable=False) for name in "abc"])
    >>> X = pd.DataFrame({"a": [0], "b": [0], "c": [0]})
    >>> found = minimal_relaxations(lambda t: ((t["a"] & t["b"]) | t["c"]), X, im, target=1)
    >>> [sorted(s) for s in found.of(0)], [sorted(s) for s in found.blocking(0)]
    ([['free c'], ['free a', 'free b']], [['free a', 'free c'], ['free b', 'free c']])
    """
    wishes = given(target=target, n=n, seed=seed, population=population, prove=prove)
    question = designed(design, {"testing": False} | wishes)
    carried = without_journal(execution)
    about = Asked.of(model, X, im, question, check=bool(carried.check), proves=True)
    source, question = about.source, about.design
    chosen, left_out = resolve(im, relaxations, source.frame)
    most = min(whole(max_size, "max_size"), len(chosen))
    first = tally(about, [im], purposes=["draw"]).counts[0]
    check_answered(answered([first.take(about.chosen)]), question, list(about.heard.causes), None)
    settled = _Settled(about)
    stuck = about.chosen & (first.hits == 0) & ~source.invalid & (first.status != STATUSES.index("empty"))
    listed = first.is_law("exact") & (first.unresolved == 0)  # so far everything of this person is known
    for i in np.flatnonzero(stuck & ~listed).tolist():
        found_way = settled(im, i)
        stuck[i], listed[i] = found_way is not True, found_way is False
    unproved = int((stuck & ~listed).sum())
    found: dict[int, list[tuple[Names, bool]]] = {int(i): [] for i in np.flatnonzero(stuck)}
    for size in range(1, most + 1):
        lists_all = np.ones(len(source), dtype=bool)
        combos = list(combinations(chosen, size))
        for at in range(0, len(combos), BATCH):
            _level(about, im, combos[at : at + BATCH], found, listed, lists_all, settled)
        listed = listed & lists_all
    rows = [
        {"person": source.labels[i], "relaxations": names, "size": len(names), "proven": bool(proven)}
        for i, sets in found.items()
        for names, proven in sets
    ]
    table = pd.DataFrame(rows, columns=["person", "relaxations", "size", "proven"]).set_index("person")
    without = [i for i, sets in found.items() if not sets]
    info = {
        "max_size": most,
        "relaxations": [r.name for r in chosen],
        "left_out": list(left_out),
        "n": question.draws,
        "seed": question.seed,
        "target": question.target.describe(),
        "unproved": unproved,
    }
    made = MinimalRelaxations(
        table, tuple(source.labels[i] for i in found), tuple(source.labels[i] for i in without),
        tuple(source.labels[i] for i in without if listed[i]), info,
    )  # fmt: skip
    return replace(made, info=noted(info, about.checked([first.take(about.chosen)], carried.check, made)))


def _level(
    about: Asked, im: InteractionModel, combos: Sequence[tuple[Relaxation, ...]], found: dict[int, list[tuple[Names, bool]]],
    listed: npt.NDArray[np.bool_], lists_all: npt.NDArray[np.bool_], settled: _Settled,
) -> None:  # fmt: skip
    """Some joint relaxations of one size, for everybody who has no smaller one inside."""
    sets = [frozenset(r.name for r in combo) for combo in combos]
    wanted = np.zeros((len(sets) + 1, len(about.source)), dtype=bool)
    for i, known in found.items():
        for k, names in enumerate(sets, start=1):
            wanted[k, i] = not any(smaller < names for smaller, _ in known)
    some = replace(about, chosen=np.asarray(wanted.any(axis=0)))
    keep = [k for k in range(1, len(sets) + 1) if wanted[k].any()]
    if not keep:
        return
    models = [_joint(im, combos[k - 1]) for k in keep]
    counted = tally(some, [im, *models], purposes=["draw"] * (len(keep) + 1), wanted=wanted[[0, *keep]])
    for row, k in enumerate(keep, start=1):
        seen = counted.counts[row]
        sure = seen.is_law("exact") & (seen.unresolved == 0)
        for i in np.flatnonzero(wanted[k]).tolist():
            way = True if seen.hits[i] > 0 else False if sure[i] else settled(models[row - 1], i)
            if way:
                found[i].append((sets[k - 1], bool(listed[i])))
            elif way is None:
                lists_all[i] = False


class _Settled:
    """Whether a person has a way under an interaction model, by the structure of the audited model; None where that is not known."""

    def __init__(self, about: Asked) -> None:
        self.about = about
        self.known: dict[tuple[str, int], bool | None] = {}
        self.settlers: dict[str, Settler] = {}

    def __call__(self, im: InteractionModel, person: int) -> bool | None:
        """Return True where a point was found that attains the target, False where it is proved that there is none."""
        if not self.about.design.prove:
            return None
        if (im.digest, person) not in self.known:
            self.known[im.digest, person] = self._proved(im, person)
        return self.known[im.digest, person]

    def _proved(self, im: InteractionModel, person: int) -> bool | None:
        about = self.about
        source = make_source(im, about.source.frame.iloc[[person]], "keep")
        assert isinstance(source, TableSource)
        if im.digest not in self.settlers:
            whole = make_source(im, about.source.frame, "keep")
            self.settlers[im.digest] = settlers_of({"model": about.predictor}, whole, im, about.design)[0]["model"]
        counts = Counts.of([0], [1])  # no draw attains the target
        found = self.settlers[im.digest].settle(source, about.ask, about.before[[person]], counts, np.ones(1, dtype=bool))
        return True if found else False if counts.is_law("proved")[0] else None


def _joint(im: InteractionModel, combo: Iterable[Relaxation]) -> InteractionModel:
    model = im
    for r in sorted(combo, key=lambda r: r.kind == "constraint"):  # edits of a constraint come before it is dropped
        try:
            model = r.edit(model)
        except BudgeError as error:
            raise DesignError(f"cannot be joined with the others: {error}", where=r.name) from error
    return model


def hitting_sets(sets: Iterable[Names]) -> tuple[Names, ...]:
    """The minimal sets that meet all of these (Berge).

    Examples
    --------
    >>> [sorted(s) for s in hitting_sets([frozenset("ab"), frozenset("bc")])]
    [['b'], ['a', 'c']]
    """
    found: list[Names] = []
    for k, one in enumerate(sets):
        grown = {
            h if h & one else h | {name} for h in (found if k else [frozenset()]) for name in (one if not h & one else [""])
        }
        found = [h for h in grown if not any(other < h for other in grown)]
    return tuple(sorted(found, key=lambda s: (len(s), sorted(s))))
