"""Two runs over the same people: who changed verdict, and differences with intervals that hold whether or not the runs share their draws.

The differences of single people and of shares are made from one interval per run, each at alpha / 2, so that nothing is assumed about how the
draws of the two runs depend on each other; what is known in one run takes nothing of alpha. Where all verdicts are known, people are pairs, and the exact
interval of `budge.stats.paired_difference` holds for a population of which they are a random sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.failing import ASIDE
from budge.audit.gate import Gate, gate_table, verdict_words
from budge.audit.result import Audit
from budge.audit.summary import heads, records
from budge.audit.tally import Tally
from budge.errors import InputError, Problem, in_lines, one_line
from budge.stats import Claims, Difference, claim, paired_difference
from budge.stats._checks import percent, plain
from budge.stats.claims import EXTREMES, VERDICTS, Question
from budge.wording import percent as shown_share

__all__ = ["Comparison", "compare"]

CERTAIN = ("exact", "proved")  # laws under which nothing was drawn
MOST_MOVES = 6  # changes of verdict in a sentence


@dataclass(frozen=True)
class Comparison:
    """What two runs say of the people who are in both; every difference is second minus first.

    `table` has one row per person: the verdicts (`first`, `second`), `changed`, responsiveness in both runs (`rho_first`, `rho_second`), `difference`, and
    its interval (`low`, `high`) at 1 - alpha per person. `low` and `high` of the comparison bound the difference of the shares of these people who are on
    the side of the claim; `population` is the difference for a population of which they are a random sample, None where verdicts rest on draws.
    """

    table: pd.DataFrame = field(repr=False)
    judged: int
    only: tuple[int, int]
    counts: tuple[int, int]  # verdicts of the claim among those whom both runs judge
    low: float
    high: float
    population: Difference | None
    claim: str
    threshold: float
    alpha: float
    exact: bool
    approximate: bool
    outside: bool  # whoever is in one run alone has the target in the other
    differs: tuple[str, ...]

    @property
    def changed(self) -> pd.DataFrame:
        """The people whose verdict changed, the largest difference first."""
        rows = self.table[self.table["changed"]]
        return rows.iloc[np.argsort(-rows["difference"].abs().fillna(0.0).to_numpy(), kind="stable")]

    @property
    def moves(self) -> pd.DataFrame:
        """How many people have each pair of verdicts, changes first."""
        found = self.table.groupby(["first", "second"], sort=True).size().rename("people").reset_index()
        order = np.lexsort((-found["people"], found["first"] == found["second"]))
        return found.iloc[order].reset_index(drop=True)

    def gate(self, condition: str) -> Gate:
        """Evaluate a condition over the table, with `difference_low` and `difference_high`, the interval of the difference of shares."""
        numbers = {"difference_low": self.low, "difference_high": self.high}
        return gate_table(self.table, condition, numbers=numbers, words=dict.fromkeys(("first", "second"), verdict_words(self.threshold)))

    def __str__(self) -> str:
        return in_lines(self.sentences())

    def sentences(self) -> list[str]:
        """Return the sentences, the most important first."""
        many, moved = len(self.table), self.moves[self.moves["first"] != self.moves["second"]]
        told = [f"{k:,} from {a} to {b}" for a, b, k in moved.head(MOST_MOVES).itertuples(index=False)]
        told += [f"{len(moved) - MOST_MOVES} other changes"] if len(moved) > MOST_MOVES else []
        changed = int(self.table["changed"].sum())
        lines = [f"{heads(many)} in both runs; {changed:,} changed verdict{': ' if told else ''}{', '.join(told)}."]
        if any(self.only):
            why = ": they have the target in the other run as they are" if self.outside else ""
            lines.append(f"Not compared: {heads(self.only[0])} in the first run alone and {self.only[1]:,} in the second alone{why}.")
        if self.judged:
            lines.append(self._shares())
        if changed and not self.exact and not self.approximate:
            rows = self.table[self.table["changed"]]
            shown = int(((rows["low"] > 0) | (rows["high"] < 0)).sum())
            lines.append(f"For {shown:,} of those who changed a difference of responsiveness is shown, each with an error of at most {percent(self.alpha)}.")
        if self.population is not None:
            ends = f"between {_points(self.population.low)} and {_points(self.population.high)} points"
            lines.append(f"In a population of which they are a random sample the difference lies {ends} ({percent(1 - self.alpha)} confidence).")
        return [*lines, *(f"{text[0].upper()}{text[1:]}." for text in self.differs)]

    def _shares(self) -> str:
        first, second = (shown_share(k / self.judged) for k in self.counts)
        side = "with no way at all" if self.threshold == 0 and self.claim == "below" else f"{self.claim} the threshold {self.threshold:g}"
        told = f"Of the {self.judged:,} whom both runs judge, {first} are {side} in the first run and {second} in the second"
        if self.exact:
            return f"{told}: a difference of {_points((self.counts[1] - self.counts[0]) / self.judged)} points, known exactly."
        ends = f"between {_points(self.low)} and {_points(self.high)} points"
        if self.approximate:
            return f"{told}, by verdicts; the difference of the shares appears to lie {ends}, without a guaranteed error rate (draws of a chain)."
        return f"{told}, by verdicts; the difference of the shares lies {ends} ({percent(1 - self.alpha)} confidence)."

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        names = ("judged", "only", "counts", "low", "high", "claim", "threshold", "alpha", "exact", "approximate", "outside", "differs")
        rows = self.table.reset_index(names="person")
        found: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        population = None if self.population is None else plain({k: getattr(self.population, k) for k in ("estimate", "low", "high", "p_value", "method")})
        return found | {"people": len(rows), "population": population, "moves": records(self.moves), "table": records(rows)}

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.changed)


def _points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def compare(first: Audit, second: Audit, *, model: str | None = None, other: str | None = None) -> Comparison:
    """Compare two runs of the same people, matched by their labels.

    Parameters
    ----------
    model, other
        Which model of the first run and which of the second (the same name unless given), where a run has several.

    Raises
    ------
    InputError
        The runs ask different questions (target, threshold, claim, alpha, measure) or have different people without labels of their own.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> X = pd.DataFrame({"income": [1, 2, 3]})
    >>> old, new = (budge.audit(lambda t, cut=cut: (t["income"] > cut) * 1, X, im, target=1) for cut in (9, 4))
    >>> print(compare(old, new).sentences()[0])
    3 people in both runs; 3 changed verdict: 3 from below to above.
    """
    one = first._named(model)
    two = second._named(other if other is not None else one if one in second.models else None)
    InputError.raise_if(_refusals(first, second))
    sides = (first.whole(), one), (second.whole(), two)
    (mine, _), (its, _) = sides
    rows = mine.rows[one], its.rows[two]
    _check_labels(first, second, rows)
    at = rows[1].index.get_indexer(rows[0].index)
    places = np.flatnonzero(at >= 0), at[at >= 0]
    if not len(places[0]):
        remedy = "audit both with the column that names people: --id, in Python the table's index"
        raise InputError("nobody is in both runs", where="compare", got=rows[1].index[:1].tolist(), remedy=remedy)
    design, claims = mine.design, [run.claims(name).take(p) for (run, name), p in zip(sides, places)]
    counts = [own.counts.take(p) for own, p in zip(rows, places)]
    judged = ~counts[0].is_law("none") & ~counts[1].is_law("none")
    low, high = _ends(claims, counts, (mine, its))
    verdicts = [pd.Series(VERDICTS).array.take(c.verdict_code) for c in claims]
    table = pd.DataFrame(
        {
            "first": verdicts[0], "second": verdicts[1], "changed": claims[0].verdict_code != claims[1].verdict_code, "rho_first": claims[0].rho,
            "rho_second": claims[1].rho, "difference": claims[1].rho - claims[0].rho, "low": np.where(judged, low, np.nan),
            "high": np.where(judged, high, np.nan),
        },
        index=rows[0].index[places[0]],
    )  # fmt: skip
    sided = [_on_side(c, design.claim)[judged] for c in claims]
    alone, away = int((sided[0] & ~sided[1]).sum()), int((~sided[0] & sided[1]).sum())
    settled = [c.is_law(*CERTAIN) & ~own.has("inconclusive") for c, own in zip(counts, claims)]
    exact = bool(judged.any() and all(s[judged].all() for s in settled))
    shares = [
        Tally.of(own, run.claims(name), p[judged]).share(design.claim, design.alpha / 2) if judged.any() else None
        for own, (run, name), p in zip(rows, sides, places)
    ]
    ends = (np.nan, np.nan) if shares[0] is None or shares[1] is None else (shares[1].low - shares[0].high, shares[1].high - shares[0].low)
    many = int(judged.sum())
    return Comparison(
        table, many, (len(rows[0].index) - len(table), len(rows[1].index) - len(table)), (int(sided[0].sum()), int(sided[1].sum())),
        float(ends[0]), float(ends[1]),
        paired_difference(away, alone, many, alpha=design.alpha) if exact else None, design.claim, design.threshold, design.alpha, exact,
        any(bool(c.approximate[judged].any()) for c in counts), _all_outside(first, second), tuple(_differing(first, second, one, two)),
    )  # fmt: skip


def _all_outside(first: Audit, second: Audit) -> bool:
    """Return whether both runs are about all those among the same people who do not have the target."""
    same = first.info["data_digest"] == second.info["data_digest"]
    return same and all(run.info["population"] == "outside" and not any(note.where == ASIDE for note in run.notes) for run in (first, second))


def _on_side(claims: Claims, side: str) -> npt.NDArray[np.bool_]:
    """Return who has the verdict of the claim; people without any way are below every threshold."""
    if side == "above":
        return claims.has("above")
    return np.asarray(claims.has("below") | (claims.extreme_code == EXTREMES.index("none")))


def _ends(claims: list[Claims], counts: list[Any], runs: tuple[Audit, Audit]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the interval of each person's difference: a run that is known takes nothing of alpha, two that are not take half of it each."""
    half = [claim(c, Question(run.design.threshold, run.design.alpha / 2, run.design.rule)) for c, run in zip(counts, runs)]
    both = ~claims[0].known & ~claims[1].known
    low = [np.where(both, h.low, c.low) for h, c in zip(half, claims)]
    high = [np.where(both, h.high, c.high) for h, c in zip(half, claims)]
    return low[1] - high[0], high[1] - low[0]


def _refusals(first: Audit, second: Audit) -> list[Problem]:
    """Return what makes verdicts of two runs answers to different questions."""
    found = []
    for name, remedy in (("threshold", "--threshold"), ("claim", "--claim"), ("alpha", "--alpha")):
        values = [getattr(run.design, name) for run in (first, second)]
        if values[0] != values[1]:
            found.append(Problem(name, f"the runs have different values: {values[0]} and {values[1]}", remedy=f"audit again with one {remedy}"))
    if first.info["target"] != second.info["target"]:
        what = f"the runs have different targets: that the output {first.info['target']}, and that it {second.info['target']}"
        found.append(Problem("target", what, remedy="compare runs of one target"))
    if first.info["measure"] != second.info["measure"]:
        what = f"responsiveness is a share of different things: measure {first.info['measure']} and {second.info['measure']}"
        found.append(Problem("measure", what, remedy="audit again with one measure in both specs"))
    return found


def _check_labels(first: Audit, second: Audit, rows: tuple[Any, Any]) -> None:
    """Raise an error where labels do not tell who is who."""
    for own in rows:
        if not own.index.is_unique:
            raise InputError("labels occur more than once", where="compare", got=own.index[own.index.duplicated()][0], remedy="audit with labels that differ")
    places = any(own.index.name is None and own.index.dtype.kind in "iu" and np.array_equal(own.index, own.place) for own in rows)
    if places and first.info["data_digest"] != second.info["data_digest"]:
        what = "the runs have different tables of people, and people are named by their position alone"
        raise InputError(what, where="compare", remedy="audit both with the column that names people: --id, in Python the table's index")


def _differing(first: Audit, second: Audit, model: str, other: str) -> list[str]:
    """Return what differs between the runs besides the answers, in words."""
    said = []
    digests = [run.info["model_digests"].get(name) for run, name in ((first, model), (second, other))]
    if None in digests:
        said.append("a model is code: whether the models differ is not known")
    elif digests[0] != digests[1]:
        said.append("the models differ")
    specs = [run.info["spec_digest"] for run in (first, second)]
    if None in specs:
        said.append("interactions are code: whether they differ is not known")
    elif specs[0] != specs[1]:
        said.append("the interaction models differ, so that responsiveness is a share of other points")
    if first.info["data_digest"] != second.info["data_digest"]:
        said.append("the tables of people differ: people are matched by their labels")
    for name, words in (("population", "populations"), ("seed", "seeds"), ("n", "numbers of draws"), ("method", "methods"), ("sequential", "stopping rules")):
        values = [run.info["population"] if name == "population" else getattr(run.design, name) for run in (first, second)]
        if values[0] != values[1]:
            said.append(f"the {words} differ: {values[0]} and {values[1]}")
    if "function" in first.design.to_dict()["target"] or "function" in second.design.to_dict()["target"]:
        said.append("a target is code: whether the targets differ is not known")
    return said
