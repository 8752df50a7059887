"""The task of recourse: the least change that attains the target for one person, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge.audit.ask import wavering
from budge.audit.design import Design, designed, given
from budge.audit.drift import Heard, HeardAsker, confirmed
from budge.audit.failing import with_result
from budge.audit.proving import Question, Settler, UnansweredError, settlers_of
from budge.audit.result import same_cell
from budge.audit.rows import Context
from budge.audit.run import Prepared, prepare
from budge.audit.sources import BoolArray, FloatArray, TableSource, choose
from budge.audit.summary import HOW, records
from budge.audit.tasks import people_of
from budge.errors import InputError, ModelError, Problem, in_lines, one_line
from budge.interaction import InteractionModel
from budge.models.reading import plain
from budge.proof.costs import Cost, CostFunction
from budge.proof.goals import goal_of
from budge.proof.least import TOLERATED
from budge.proof.polish import cheapest, feasible_from, in_few_digits, polish
from budge.proof.structure import UnreadableError, columns_of
from budge.reach.reacher import reacher
from budge.stats._checks import whole
from budge.stats.counts import STATUSES
from budge.wording import Wording

__all__ = ["Recourse", "in_full", "plans_of", "recourse"]

DRAWS = 1000  # for models whose structure cannot be read, and as first candidates elsewhere
STARTS = 5  # draws from which a plan is polished
DEARER = 1e-3  # the share by which the cost of a plan may rise for numbers with fewer digits; TOLERATED where it is proved to be the least
MOST_WAVERING = 10  # times that plans at the model's cut are left out and the search begins again
WAVERING = "points at the cut of the model, whose answer hangs on how many rows it is asked about at once, are not taken for plans"


@dataclass(frozen=True)
class Recourse:
    """Plans for one person, the cheapest first.

    `status` is ``possible``, ``impossible`` (proved), ``already`` (the target is attained as it is), ``unresolved`` (nothing was found, and nothing proved),
    ``empty`` or ``invalid_start``; `reason` states why there is no plan. `method` is ``listed``, ``proved`` or ``polished``. `least` tells of each plan
    whether no cheaper one exists that moves another set of features than the plans before it; `optimal` whether that is so of all. Real numbers of a plan
    have as few digits as the target and the rules allow, for which a least cost is exceeded by a ten-millionth at most, that of other plans by a thousandth.
    """

    start: pd.DataFrame = field(repr=False)
    points: pd.DataFrame
    cost: tuple[Any, ...]
    least: tuple[bool, ...]
    status: str
    method: str = ""
    reason: str = ""
    info: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notes: tuple[Problem, ...] = ()
    values: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)  # the points as numbers, one column per feature

    @property
    def optimal(self) -> bool:
        """Whether there are plans, and no cheaper ones."""
        return len(self.least) > 0 and all(self.least)

    @cached_property
    def actions(self) -> pd.DataFrame:
        """What each plan changes: plan, feature, from, to."""
        rows = []
        for plan, (_, point) in enumerate(self.points.iterrows(), start=1):
            here = self.start.iloc[0]
            rows += [(plan, name, here[name], point[name]) for name in self.points.columns if not same_cell(here[name], point[name])]
        return pd.DataFrame(rows, columns=["plan", "feature", "from", "to"])

    def __len__(self) -> int:
        return len(self.points)

    def __str__(self) -> str:
        return in_lines(self._lines())

    def _lines(self) -> list[str]:
        target = f"the output {self.info.get('target', '')}"
        if not len(self):
            return [_without(self.status, self.reason, target), *self._acted()]
        which = "cheaper plans may exist" if not self.least[0] else "no cheaper plan exists" if self.optimal else "none is cheaper than the first"
        sure = f"{which}: {HOW[self.method]}" if self.least[0] else which
        plans = "1 plan" if len(self) == 1 else f"{len(self)} plans"
        lines = [f"{plans} for the target: {target} ({sure})."]
        for plan, cost in enumerate(self.cost, start=1):
            mine = self.actions[self.actions["plan"] == plan]
            moves = ", ".join(f"{f} from {in_full(a)} to {in_full(b)}" for f, a, b in zip(mine["feature"], mine["from"], mine["to"]))
            lines.append(f"{plan}. {moves} ({self._costs(cost)})")
        return lines

    def _costs(self, cost: Any) -> str:
        if isinstance(cost, tuple):
            return f"{int(cost[0])} {'feature' if cost[0] == 1 else 'features'}, distance {cost[1]:.3g}"
        return f"cost {cost:.4g}"

    def letter(self, wording: Wording | Mapping[str, Any] | None = None) -> str:
        """Return the plans as a text for the person whom they are for: in your words for target and features, else in the names of the table.

        Examples
        --------
        >>> import budge
        >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9)), budge.Feature("debt", "integer", bounds=(0, 9))])
        >>> found = budge.recourse(lambda t: (t["income"] - t["debt"] > 2).astype(int), {"income": 2, "debt": 1}, im, target=1)
        >>> print(found.letter())
        What would change the decision
        <BLANKLINE>
        The decision about you is 0. It would be 1 if this changed:
        <BLANKLINE>
          - income: from 2 to 4
        <BLANKLINE>
        This is the least that is enough: every possible change was checked.
        """
        words = Wording.of(wording)
        now, wanted = self.info.get("prediction"), self.info.get("wanted")
        make = f"lead to {words.goal()}" if words.target_name else f"make it {wanted}"
        lines = ["What would change the decision", ""]
        if not len(self):
            said = {
                "already": f"The decision about you is {now} already. Nothing has to change.",
                "impossible": f"The decision about you is {now}. No change that is open to you would {make}. This is proved, not estimated.",
            }
            lines.append(said.get(self.status, f"The decision about you is {now}. No change was found that would {make}: {self.reason}."))
            return in_lines([*lines, *self._acted()])
        lines.append(f"The decision about you is {now}. " + (f"This would {make}:" if words.target_name else f"It would be {wanted} if this changed:"))
        for plan in range(1, len(self) + 1):
            mine = self.actions[self.actions["plan"] == plan]
            lines += ["", *(["Or this instead:", ""] if plan > 1 else [])]
            moves = [(f, words.level(f, a) or in_full(a), words.level(f, b) or in_full(b)) for f, a, b in zip(mine["feature"], mine["from"], mine["to"])]
            lines += [f"  - {words.feature(str(f))}: from {a} to {b}" for f, a, b in moves]
        checked = {"listed": "every possible change was checked", "proved": "it is proved that nothing less would do"}.get(self.method, "")
        one = "This is the least that is enough" if len(self) == 1 else "The first is the least that is enough"
        lines += ["", f"{one}: {checked}." if self.least[0] else "Other, smaller changes may be enough too; these are the best that were found."]
        return in_lines([*lines, *self._acted()])

    def _acted(self) -> list[str]:
        """Return what is to be known of effects: a way may also come about by what happens after a change."""
        return [] if self.status == "already" else [f"Note: {note.what}." for note in self.notes if note.where == "effects"]

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {
            "status": self.status, "reason": self.reason, "method": self.method, "optimal": self.optimal,
            "least": list(self.least),
            "cost": [list(c) if isinstance(c, tuple) else c for c in self.cost],
            "actions": records(self.actions), "points": records(self.points), "info": dict(self.info), "notes": [n.to_dict() for n in self.notes],
        }  # fmt: skip

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.actions)


def _without(status: str, reason: str, target: str) -> str:
    said = {
        "already": f"No change is needed: {target} already.",
        "impossible": f"No action leads to the target: {target} ({reason}).",
        "unresolved": f"No plan was found for the target: {target}; {reason}.",
    }
    return said.get(status, f"No plan: {status}.")


def in_full(value: Any) -> str:
    """Return a value in full: a plan lies just beyond a cut, and a rounded one might not."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    number = float(value)
    return f"{int(number):,}" if number.is_integer() else f"{number:,.17g}" if float(f"{number:.15g}") != number else f"{number:,.15g}"


def recourse(
    model: Any, x: Any, im: InteractionModel, *, target: Any = None, k: int = 1, cost: Mapping[str, float] | CostFunction | None = None,
    n: int | None = None, seed: int | None = None, seconds: float | None = None, on_invalid: Literal["error", "skip", "keep"] | None = None,
    design: Design | None = None,
) -> Recourse:  # fmt: skip
    """Find the least change that attains the target for one person.

    Every plan is feasible, was asked of the model itself, and is minimal: no single feature of it can be put back. Where the reachable points can be
    listed, or the model's structure can be read, the plan is the least there is, or it is proved that there is none; elsewhere it is
    the best that polishing draws has found.

    Parameters
    ----------
    model, im
        As in `budge.audit`; one model.
    x
        One person: a row of a table, or a mapping.
    target
        A label, labels, or a target of `budge.targets`.
    k
        Plans at most; each moves another set of features.
    cost
        Weights per unit of change by feature (levels: per change), or a function of (points, start) that returns one number per point. By default the number
        of features changed, then the distance in units of each feature's range.
    n, seed
        Draws that are polished where nothing can be proved (1,000), and their seed.
    seconds
        Seconds for each search at most. Without it, budgets are counted in steps, so that every run gives the same answer.
    on_invalid
        ``error``, ``skip`` or ``keep``: what happens if the person breaks the interaction model before any move.
    design
        A `budge.Design` whose fields take the place of the defaults.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9)), budge.Feature("debt", "integer", bounds=(0, 9))])
    >>> found = budge.recourse(lambda t: (t["income"] - t["debt"] > 2).astype(int), {"income": 2, "debt": 1}, im, target=1, k=2)
    >>> found.actions.values.tolist(), found.optimal
    ([[1, 'income', 2, 4], [2, 'income', 2, 3], [2, 'debt', 1, 0]], True)
    """
    if not isinstance(im, InteractionModel):
        raise InputError("recourse needs an interaction model", where="im", got=type(im).__name__)
    person, _ = people_of(x, im)
    if len(person) != 1:
        raise InputError("one person is expected", where="x", got=f"{len(person)} rows", remedy="give df.iloc[[0]]")
    im, notes = _acted(im)
    asked = {"threshold": 0.0, "testing": False, "n": DRAWS, "population": "all", "max_unresolved": 1.0}
    asked |= given(target=target, n=n, seed=seed, prove_seconds=seconds, on_invalid=on_invalid)
    made = prepare(model, person, im, designed(design, asked))
    if len(made.predictors) != 1:
        raise InputError("one model is expected", where="model", got=sorted(made.predictors))
    return _Search(made, im, whole(k, "k"), cost, notes).run()


def plans_of(
    context: Context, name: str, place: int, design: Design, *, k: int, cost: Any, seconds: float | None, polished: bool = True
) -> Recourse:
    """Return the plans of one person of an audit; the model's structure is read once for all of them. Without `polished`, only what can be proved."""
    if not isinstance(context.source, TableSource):
        raise InputError("recourse needs a table of people", got=type(context.source).__name__)
    question = Design(
        target=design.target, threshold=0.0, testing=False, n=DRAWS, seed=design.seed, population="all", max_unresolved=1.0, prove_seconds=seconds,
        on_invalid="keep" if design.on_invalid == "keep" else "skip",
    )  # fmt: skip
    im, notes = _acted(context.im)
    made = prepare({name: context.predictors[name]}, context.source.frame.iloc[[place]], im, question, check=False)
    source = context.source

    def settlers() -> tuple[dict[str, Settler], tuple[Problem, ...]]:
        columns = columns_of(source.frame, im.features)
        if name not in context.settlers or context.settlers[name][0] != columns:
            context.settlers[name] = (columns, *settlers_of({name: context.predictors[name]}, source, im, question))
        _, found, more = context.settlers[name]
        return {name: replace(found[name], im=im, target=question.target, seconds=seconds, _made={})}, more

    return _Search(made, im, whole(k, "k"), cost, notes, settlers, polished).run()


def _acted(im: InteractionModel) -> tuple[InteractionModel, tuple[Problem, ...]]:
    """Return what people can do, however often, without what happens afterwards, and a note of that."""
    im = im.without_distributions()
    if not im.effects:
        return im, ()
    names = ", ".join(dict.fromkeys(effect.feature for effect in im.effects))
    what = f"what happens to {names} afterwards is left out: a plan is about the change itself"
    return im.without_effects(), (Problem("effects", what, severity="warning"),)


class _WaveringError(Exception):
    """Points that were plans, and whose answer hangs on how many rows the model is asked about at once."""

    def __init__(self, points: FloatArray) -> None:
        super().__init__()
        self.points = points


class _Search:
    """The search for one person's plans."""

    def __init__(
        self, made: Prepared, im: InteractionModel, k: int, cost: Any, notes: tuple[Problem, ...],
        settlers: Callable[[], tuple[dict[str, Settler], tuple[Problem, ...]]] | None = None, polished: bool = True,
    ) -> None:  # fmt: skip
        self.settlers, self.polishes = settlers, polished  # a model's structure is read only where points are not listed
        assert isinstance(made.source, TableSource)
        self.made, self.im, self.k, self.notes = made, im, k, notes
        self.source, (self.name, plain) = made.source, next(iter(made.askers.items()))
        self.ask = HeardAsker.hearing(plain, Heard())
        self.before = made.before[self.name][0]
        self.start: FloatArray = self.source.values[0]
        self.moved = reacher(im).moved
        self.ranges = {f.name: (float(v), float(v) + 1.0) for f, v in zip(im.features, self.start)}
        self.given = cost
        self.cost = Cost.of(cost, im, self.ranges, decode=self._written)
        self.unsure: set[bytes] = set()  # points at the model's cut, which are no plans

    def run(self) -> Recourse:
        """Return the plans; raise an error, with these attached, where the model answers otherwise at the end than it did."""
        for _ in range(MOST_WAVERING):
            try:
                found = self._in_few_digits(self._run())
                break
            except _WaveringError as error:
                self.unsure |= {point.tobytes() for point in error.points[:, self.moved] + 0.0}
        else:
            found = self._none("unresolved", "the points that attain the target lie at the model's cut, where rounding decides")
        if self.unsure:
            found = replace(found, notes=(*found.notes, Problem(self.name, WAVERING, got=f"{len(self.unsure):,} points", severity="warning")))
        found = replace(found, notes=(*found.notes, *self.ask.heard.unanswered(self.name)))
        confirmed(self.ask, self.made.predictors, self.source.starts(), self.made.before[self.name], True, found)
        return found

    def _run(self) -> Recourse:
        word = STATUSES[int(self.source.status[0])]
        if bool(self.made.design.target.hits(np.asarray([self.before]), np.asarray([self.before]))[0]):
            return self._none("already", "the target is attained as it is")
        if word in ("empty", "invalid_start"):
            return self._none(word, word)
        listed, _, _ = choose(self.source, self.made.design)
        return self._listed() if listed[0] else self._searched()

    def _in_few_digits(self, found: Recourse) -> Recourse:
        """Return the plans with real numbers in as few digits as the target, the rules and the proof allow; listed points stay as they are."""
        real = np.array([not f.discrete for f in self.im.features], dtype=bool)
        if found.method == "listed" or not real.any() or not len(found):
            return found
        feasible = feasible_from(self.im, self.start)

        def good(points: FloatArray) -> BoolArray:
            passed = np.array(feasible(points), dtype=bool)
            passed[passed] = self._good(points[passed]) if passed.any() else False
            return passed

        points = found.values.copy()
        for i, (price, least) in enumerate(zip(np.abs(self.cost.main(points, self.start)).tolist(), found.least)):
            points[i] = in_few_digits(points[i], self.start, real, good, self.cost, (TOLERATED if least else DEARER) * price)
        if np.array_equal(points, found.values, equal_nan=True):
            return found
        order = self.cost.order(points, self.start)
        kept = [found.least[i] for i in order.tolist()]
        return self._found(points[order], "proved" if kept[0] else "polished", kept)

    def _listed(self) -> Recourse:
        chunk = next(iter(self.source.exact([0])))
        found = self.ask(chunk.rows, np.repeat(np.asarray([self.before]), len(chunk.rows)))
        every, lost = self.source.values_of(chunk), int((~found.good).sum())
        points = every[found.hit & self._sure(every)]
        places = cheapest(points, self.start, self.cost, self.k, groups=self._parts())
        if len(places):
            return self._found(points[places], "listed", [not lost] * len(places))
        if lost:
            what = f"{lost:,} of {len(chunk.rows):,} reachable points have no answer{self.ask.heard.why}, and none of the others attains the target"
            return self._none("unresolved", what)
        return self._none("impossible", HOW["listed"], "listed")

    def _searched(self) -> Recourse:
        one = {self.name: self.made.predictors[self.name]}
        settlers, notes = self.settlers() if self.settlers else settlers_of(one, self.source, self.im, self.made.design)
        settler, self.notes = settlers[self.name], (*self.notes, *notes)
        if settler.structure is None and not self.polishes:
            return self._none("unresolved", "the model's structure cannot be read")
        hits, why = self._hits(), f"none of {self.made.design.draws:,} draws attains the target"
        found: Recourse | None = None
        if settler.structure is not None and self.cost.function is None:
            found = self._proved(settler, hits[self.cost.order(hits, self.start)[:1]])
            if found is not None and (found.optimal or not len(found)):  # the least, or proved impossible
                return found
            why += ", and the search ended before a proof"
        best = self._polished(hits) if self.polishes else hits[:0]
        if found is not None:
            best = np.concatenate([found.values, best])
        if len(places := cheapest(best, self.start, self.cost, self.k, minimal=False)):
            known = {} if found is None else {point.tobytes(): sure for point, sure in zip(found.values, found.least)}
            points = best[places]
            least = [known.get(point.tobytes(), False) for point in points]
            return self._found(points, "proved" if least[0] else "polished", least)
        if self.ask.heard.lost:
            why += f"; {self.ask.heard.lost:,} points have no answer{self.ask.heard.why}"
        return self._none("unresolved", why)

    def _proved(self, settler: Settler, best: FloatArray) -> Recourse | None:
        """Return the least plans by the model's structure; None where these are not better than what is known."""
        assert settler.structure is not None
        assert settler.reading is not None
        columns = settler.structure.columns
        place = {column.name: j for j, column in enumerate(columns)}
        own = [place[f.name] for f in self.im.features]
        start = settler.starts(self.source, [0]).get(0)
        if start is None:
            return None
        try:
            goal = goal_of(settler.structure.answer, settler.reading, self.made.design.target, self.before)
        except UnreadableError:
            return None
        known = np.tile(start, (len(best), 1))
        known[:, own] = best
        cost = Cost.of(self.given, self.im, self.ranges, columns=list(place))
        ask = Question(settler, self.source, 0, self.ask, self.before)
        try:
            plans = settler.prover.least(start, goal, lambda points: ask(points) & self._sure(points[:, own]), cost, self.k, best=list(known))
        except UnansweredError:
            return None
        if plans.plans:
            points, least = np.array([plan.point for plan in plans.plans])[:, own], [p.optimal and not ask.lost for p in plans.plans]
            return self._found(points, "proved" if least[0] else "polished", least)
        return self._none("impossible", HOW["proved"], "proved") if plans.status == "impossible" and not ask.lost else None

    def _hits(self) -> FloatArray:
        """Return the draws that attain the target."""
        chunks = list(self.source.draws([0], self.made.design.draws, self.made.design))
        found = np.concatenate([self.source.values_of(c)[self._attained(c)] for c in chunks])
        return found[self._sure(found)]

    def _parts(self) -> list[list[int]]:
        """Return the columns of parts of several features."""
        place = {f.name: j for j, f in enumerate(self.im.features)}
        return [[place[name] for name in part.names] for part in self.im.parts if len(part.names) > 1]

    def _polished(self, hits: FloatArray) -> FloatArray:
        """Return plans found by polishing draws, from other draws for each plan."""
        features, parts = self.im.features, self._parts()
        found = []
        for at in range(min(self.k, len(hits))):
            made = polish(
                self.start, hits[at :: self.k], self._good, feasible_from(self.im, self.start), self.cost, whole=[f.discrete for f in features],
                listed=[f.levels is not None for f in features], parts=parts, starts=STARTS,
            )  # fmt: skip
            found += [] if made.point is None else [made.point]
        return np.array(found).reshape(-1, len(self.start))

    def _attained(self, chunk: Any) -> BoolArray:
        return self.ask(chunk.rows, np.repeat(np.asarray([self.before]), len(chunk.rows))).hit

    def _good(self, points: FloatArray) -> BoolArray:
        return self.ask(self._written(points), np.repeat(np.asarray([self.before]), len(points))).hit & self._sure(points)

    def _sure(self, points: FloatArray) -> BoolArray:
        """Return which points are not known to lie at the model's cut."""
        if not self.unsure:
            return np.ones(len(points), dtype=bool)
        return np.array([point.tobytes() not in self.unsure for point in points[:, self.moved] + 0.0], dtype=bool)

    def _written(self, points: FloatArray) -> pd.DataFrame:
        return self.source.written(np.zeros(len(points), dtype=np.intp), points[:, self.moved])

    def _found(self, points: FloatArray, method: str, least: Sequence[bool]) -> Recourse:
        table = self._written(points)
        table.index = pd.RangeIndex(1, len(table) + 1, name="plan")
        costs = self.cost.values(points, self.start)
        shown = tuple(tuple(row) for row in costs.tolist()) if self.cost.first == "features" else tuple(costs[:, 0].tolist())
        again = self.ask.fresh()(self._written(points), np.repeat(np.asarray([self.before]), len(points)))
        after = again.outputs[0] if again.good[0] else None
        found = Recourse(self.source.frame, table, shown, tuple(least), "possible", method, "", self._info(after), self.notes, points)
        others = np.flatnonzero(again.good & ~again.hit)
        if len(others) and (unsure := points[others][wavering(self.ask, table.iloc[others], np.repeat(np.asarray([self.before]), len(others)))]).size:
            raise _WaveringError(unsure)
        if len(others):
            what = "the model answers otherwise than at the start: a plan that attained the target misses it when it is asked about again"
            raise with_result(ModelError(what, where=self.name, remedy="fix its seed and its version"), found)
        return found

    def _none(self, status: str, reason: str, method: str = "") -> Recourse:
        return Recourse(self.source.frame, self.source.frame.iloc[:0], (), (), status, method, reason, self._info(None), self.notes)

    def _info(self, after: Any) -> dict[str, Any]:
        target = self.made.design.target
        wanted = after if after is not None else target.describe().removeprefix("is ")
        return {"target": target.describe(), "prediction": plain(self.before), "wanted": plain(wanted), "model": self.made.predictors[self.name].name}
