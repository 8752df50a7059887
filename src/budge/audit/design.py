"""What an audit is asked (`Design`) and how it is carried out (`Execution`): the first decides every number, the second none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from budge.errors import DesignError, InputError, nearest, together
from budge.progress import Progress
from budge.reach.streams import check_seed
from budge.spec.findings import EXACT_LIMIT
from budge.stats import StoppingRule, planning, sprt_rule
from budge.stats._checks import fraction, one_of, percent, whole
from budge.targets import Target, as_target, from_dict
from budge.wording import Wording

__all__ = ["EXACT_LIMIT", "MASK", "Design", "Execution", "OnInvalid", "Progress", "designed", "executed", "given", "population_name", "question_of"]

Claim = Literal["below", "above"]
Method = Literal["auto", "exact", "sample"]
Adjust = Literal["bh", "holm", "bonferroni", "none"]
OnInvalid = Literal["error", "skip", "keep"]
Groups: TypeAlias = tuple[tuple[str, tuple[tuple[Any, str], ...]], ...]

HUNT = 299  # draws where no threshold sets the number: enough to find a hit of 1 in 100 with probability 95 %
GIVEN = "as given"  # why n is what it is, where the caller has set it
MASK = "a mask: "  # a population that was given person by person, with its digest
PAIRS = "$pairs"  # in records: a mapping whose keys are not all texts
SHORTHANDS = (
    "target", "threshold", "alpha", "claim", "n", "seed", "population", "method", "sequential", "proposal", "journal", "progress", "harm", "adjust", "groups",
    "prove", "n_jobs", "wording",
)  # fmt: skip
_PLANNED = ("threshold", "alpha", "claim", "margin", "width", "power", "sequential", "adjust", "least_share", "family", "testing")


def designed(design: Design | None, wishes: Mapping[str, Any]) -> Design:
    """Return a design with the wishes of a caller in the place of its fields."""
    if design is not None and not isinstance(design, Design):
        raise DesignError("must be a budge.Design", where="design", got=design, remedy="write design=budge.Design(...)")
    return Design(**wishes) if design is None else design.but(**wishes)


def executed(execution: Execution | None, wishes: Mapping[str, Any]) -> Execution:
    """Return an execution with the wishes of a caller in the place of its fields."""
    if execution is not None and not isinstance(execution, Execution):
        raise DesignError("must be a budge.Execution", where="execution", got=execution, remedy="write execution=budge.Execution(...)")
    return replace(execution or Execution(), **wishes)


def question_of(design: Design | None, execution: Execution | None, options: Mapping[str, Any]) -> tuple[Design, Execution]:
    """Return the design and the execution with the options of a caller, each in the place of the field of its name."""
    strange = [name for name in options if name not in SHORTHANDS]
    if strange:
        remedy = f"{nearest(strange[0], SHORTHANDS)}; other options are fields of Design and Execution"
        raise InputError("no such option of an audit", where=strange[0], got=options[strange[0]], remedy=remedy)
    ours = [f.name for f in fields(Execution)]
    asked, carried = ({name: value for name, value in options.items() if value is not None and (name in ours) is own} for own in (False, True))
    return designed(design, asked), executed(execution, carried)


def given(**wishes: Any) -> dict[str, Any]:
    """Return the arguments that were given: those that are not None."""
    return {name: value for name, value in wishes.items() if value is not None}


@dataclass(frozen=True)
class Design:
    """Everything that decides the result besides the model, the people and the interaction model.

    Parameters
    ----------
    target
        A label, labels, a text such as ``"score >= 0.7"``, a function, or a target of `budge.targets`.
    threshold, alpha, claim
        The claim "rho is below (above) the threshold", false with probability at most alpha per person. ``threshold=0`` asks for people who
        have no way at all.
    n, width, margin, power
        Draws per person where points are not listed: at most one of the first three; the default shows, with probability `power`, that a person
        half the threshold away is on the claim's side. With `sequential`, `n` is the most that is drawn.
    why_n
        Why n is what it is; filled in.
    sequential
        Stop for each person as soon as the claim is shown, or given up since it is too unlikely to be (SPRT at the same power).
    proposal
        Distributions to draw from instead of uniformly, by feature; results are weighted.
    method, exact_limit
        ``auto``: list where no effect acts and at most `exact_limit` points are reachable, draw otherwise.
    seed, purpose
        The stream of draws: another seed or purpose gives other draws.
    population
        ``outside`` (those not yet in the target), ``all``, a condition on the columns such as ``"age < 30"``, or a mask.
    on_invalid
        What happens with rows that break the interaction model before they move: ``error``, ``skip`` or ``keep``.
    adjust, least_share, family
        How adjusted p-values allow for the number of people. A sequential rule stops at the level that survives the adjustment: alpha divided by the
        `family` (filled in) for ``holm`` and ``bonferroni``, alpha times `least_share` (the least share of claims expected) for ``bh``.
    harm
        Which verdict is harm: a declaration of the reader, not a finding.
    groups
        Columns of the people by which shares are reported; or a mapping of columns to labels of their values.
    max_unresolved
        The largest share of unanswered points that is accepted.
    testing
        False: no claim is wanted, so that an n too small to show anything is accepted.
    prove, prove_seconds
        Settle by the model's structure whether people without a hit have no way at all, and whether people without a miss cannot miss. With
        ``method="exact"``, sets that are too large to list are counted by the structure where that is possible. The work per person is limited
        by counted steps, so that answers repeat; `prove_seconds` limits the time as well.

    Examples
    --------
    >>> design = Design(target=1, threshold=0.1)
    >>> design.n, Design.from_dict(design.to_dict()).digest == design.digest
    (298, True)
    """

    target: Any = None
    threshold: float = 0.1
    alpha: float = 0.05
    claim: Claim = "below"
    n: int | None = None
    why_n: str = ""
    width: float | None = None
    margin: float | None = None
    power: float = 0.95
    sequential: bool = False
    proposal: Mapping[str, Any] | None = None
    method: Method = "auto"
    exact_limit: int = EXACT_LIMIT
    seed: int = 0
    purpose: str = "draw"
    population: Any = "outside"
    on_invalid: OnInvalid = "error"
    adjust: Adjust = "bh"
    least_share: float = 0.1
    family: int = 1
    harm: Claim | None = None
    groups: Any = ()
    max_unresolved: float = 0.1
    testing: bool = True
    prove: bool = False
    prove_seconds: float | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        def flag(name: str) -> None:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise DesignError("must be True or False", where=name, got=getattr(self, name))

        def others() -> None:
            if self.prove_seconds is not None and not (isinstance(self.prove_seconds, int | float) and 0 < self.prove_seconds < math.inf):
                raise DesignError("must be a positive number of seconds", where="prove_seconds", got=self.prove_seconds)
            if not isinstance(self.purpose, str) or not self.purpose:
                raise DesignError("must be a text", where="purpose", got=self.purpose, remedy="leave it out, or give it a name")
            if self.proposal is not None and not isinstance(self.proposal, Mapping):
                raise DesignError("must map features to distributions", where="proposal", got=self.proposal)

        together(
            lambda: put("threshold", fraction(self.threshold, "threshold", zero=True)),
            *(partial(lambda name: put(name, fraction(getattr(self, name), name, one=name == "least_share")), n) for n in ("alpha", "power", "least_share")),
            lambda: put("max_unresolved", fraction(self.max_unresolved, "max_unresolved", zero=True, one=True)),
            lambda: one_of(self.claim, "claim", get_args(Claim)),
            lambda: one_of(self.method, "method", get_args(Method)),
            lambda: one_of(self.adjust, "adjust", get_args(Adjust)),
            lambda: one_of(self.on_invalid, "on_invalid", get_args(OnInvalid)),
            lambda: None if self.harm is None else one_of(self.harm, "harm", get_args(Claim)),
            *(partial(flag, name) for name in ("sequential", "testing", "prove")),
            lambda: put("seed", check_seed(self.seed)),
            *(partial(lambda name: put(name, whole(getattr(self, name), name)), n) for n in ("exact_limit", "family")),
            lambda: None if self.n is None else whole(self.n, "n"),
            lambda: put("groups", _groups(self.groups)),
            lambda: put("target", as_target(self.target)) if self.target is not None and not isinstance(self.target, str) else None,
            others,
        )
        if self.sequential and self.proposal is not None:
            raise DesignError("weighted draws have no stopping rule", got="sequential and proposal", remedy="drop one of them")
        if self.sequential and self.threshold == 0:
            raise DesignError("the threshold 0 has no stopping rule", where="sequential", got=True, remedy="leave sequential out")
        size, why = (self.n, self.why_n) if self.n is not None and self.why_n else self._planned()
        put("n", whole(size, "n"))
        put("why_n", why)
        if self.method == "sample" and self.proposal is None:
            self.check_draws()

    def _planned(self) -> tuple[int, str]:
        """Return the number of draws, and why."""
        tau, side = self.threshold, self.claim
        wishes = [name for name in ("n", "width", "margin") if getattr(self, name) is not None]
        if len(wishes) > 1 and not (self.sequential and wishes == ["n", "margin"]):
            raise DesignError("give one of n, width and margin", got=wishes, remedy="the others follow from it")
        if self.sequential:
            why = "at most; each person stops as soon as the claim is shown or given up"
            if self.n is None:
                return int(self._rule(None).max_n), why
            self._check_most(most := whole(self.n, "n"))
            return most, f"{GIVEN}, {why}"
        if self.n is not None:
            return whole(self.n, "n"), GIVEN
        if self.width is not None:
            return planning.samples_for_width(self.width, self.alpha), f"so that an interval is at most {self.width:g} wide"
        if tau == 0 or not self.testing:
            return HUNT, "to look for a hit"
        plan = planning.samples_for_power(threshold=tau, margin=self.gap, alpha=self.alpha, power=self.power, claim=side)
        return plan.n, f"the fewest that show {plan.rate:g} to be {side} {tau:g} with probability {percent(self.power)}"

    @property
    def gap(self) -> float:
        """The margin: as given, or half of what lies on the claim's side of the threshold."""
        if self.margin is not None:
            return fraction(self.margin, "margin")
        return self.threshold / 2 if self.claim == "below" else (1 - self.threshold) / 2

    @property
    def n_given(self) -> bool:
        """Whether the caller has set n: then it is never planned anew."""
        return self.why_n.startswith(GIVEN)

    @property
    def draws(self) -> int:
        """Draws per person; with a stopping rule, the most there can be."""
        assert self.n is not None
        return self.n

    @property
    def level(self) -> float:
        """The error at which a sequential rule stops: the one that survives the adjustment for many people."""
        return self.alpha * {"bh": self.least_share, "none": 1.0}.get(self.adjust, 1.0 / self.family)

    @cached_property
    def rule(self) -> StoppingRule | None:
        """The stopping rule, where there is one."""
        if not self.sequential:
            return None
        if self.n_given:  # the family may have grown since
            self._check_most(self.draws)
        return self._rule(self.draws)

    def _rule(self, most: int | None) -> StoppingRule:
        return sprt_rule(threshold=self.threshold, margin=self.gap, alpha=self.level, power=self.power, claim=self.claim, max_n=most)

    def _check_most(self, most: int) -> None:
        """Raise an error where the rule cannot show the claim within so many draws, whatever is seen."""
        least = int(np.argmax(self._rule(None).accept >= 0))
        if most < least:
            best = "no hit" if self.claim == "below" else "nothing but hits"
            what = f"cannot show the claim even with {best}, at the error {self.level:.2g} that survives the adjustment; needs at least {least}"
            raise DesignError(what, where="n", got=most, remedy=f"draw {least} or more, or leave n out")

    def check_draws(self) -> None:
        """Raise an error where the number of draws cannot show the claim whatever is seen."""
        if self.testing and self.threshold > 0 and self.rule is None:
            planning.check_n(self.n, threshold=self.threshold, alpha=self.alpha, claim=self.claim)

    def but(self, **changes: Any) -> Design:
        """Return the design with other values; a number of draws that was planned is planned anew where it depends on them."""
        known = [f.name for f in fields(self)]
        strange = [name for name in changes if name not in known]
        if strange:
            raise InputError("no such option of a design", where=strange[0], got=changes[strange[0]], remedy=nearest(strange[0], known))
        if "n" in changes:
            changes = {"why_n": "", **changes}
        elif not self.n_given and any(name in changes for name in _PLANNED):
            changes = {"n": None, "why_n": "", **changes}
        return replace(self, **changes)

    def aimed(self, classes: Iterable[object] | None) -> Design:
        """Return the design with its target read: a text that is one of the model's classes is that label."""
        if self.target is None:
            raise DesignError("no target is given", where="target", remedy="give a label, or a target of budge.targets")
        aim = as_target(self.target, classes=classes)
        return self if aim is self.target else replace(self, target=aim)

    def to_dict(self) -> dict[str, Any]:
        """Return the record, from which `from_dict` makes the same design."""
        record = {f.name: getattr(self, f.name) for f in fields(self)}
        if isinstance(self.target, Target):
            try:
                record["target"] = self.target.to_dict()
            except Exception:  # Python code has no record
                record["target"] = {"function": self.target.describe()}
        record["population"] = population_name(self.population)
        record["proposal"] = _written(self.proposal)
        record["groups"] = [[column, [list(pair) for pair in labels]] for column, labels in self.groups]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, target: Any = None) -> Design:
        """Return the design of a record; a target that was Python code is not in it and has to be given."""
        known = {f.name for f in fields(cls)}
        strange = sorted(set(record) - known)
        if strange:
            raise InputError("is no option of a design", where="design", got=strange[0], remedy=nearest(strange[0], known))
        wishes = dict(record)
        if target is not None:
            wishes["target"] = target
        elif isinstance(wishes.get("target"), Mapping):
            if "function" in wishes["target"]:
                raise InputError("the target is Python code and was not saved", where="target", remedy="give the target")
            wishes["target"] = from_dict(wishes["target"])
        wishes["proposal"] = _reread(wishes.get("proposal"))
        return cls(**wishes)

    @property
    def digest(self) -> str:
        """A digest of the record."""
        return blake2b(json.dumps(self.to_dict(), sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def _written(value: Any) -> Any:
    """Return mappings as records hold them: JSON turns keys into texts, so that those with other keys (weights of numbers) become pairs."""
    if not isinstance(value, Mapping):
        return value
    if all(isinstance(key, str) for key in value):
        return {key: _written(item) for key, item in value.items()}
    return {PAIRS: [[key.item() if isinstance(key, np.generic) else key, _written(item)] for key, item in value.items()]}


def _reread(value: Any) -> Any:
    """Return what `_written` was given."""
    if not isinstance(value, Mapping):
        return value
    if set(value) == {PAIRS}:
        return {key: _reread(item) for key, item in value[PAIRS]}
    return {key: _reread(item) for key, item in value.items()}


def _groups(groups: Any) -> Groups:
    """Return the columns of groups with labels of their values, however they were given."""
    if groups is None:
        return ()
    if isinstance(groups, str):
        groups = [groups]
    if isinstance(groups, Mapping):
        groups = [(column, labels or {}) for column, labels in groups.items()]
    if not isinstance(groups, Sequence):
        remedy = "name columns of the people, which may be columns that the interaction model does not name: groups=['sex', 'region']"
        raise DesignError("must be a column, columns, or a mapping of columns to labels", where="groups", got=type(groups).__name__, remedy=remedy)
    found: list[tuple[str, tuple[tuple[Any, str], ...]]] = []
    for item in groups:
        column, labels = item if isinstance(item, tuple | list) and len(item) == 2 else (item, ())
        if not isinstance(column, str):
            raise DesignError("a group is a column of the people", where="groups", got=column)
        pairs = list(labels.items() if isinstance(labels, Mapping) else labels)
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise DesignError("labels map values of the column to words", where=f"groups: {column}", got=pairs, remedy="name a column of the people")
        found.append((column, tuple((value, str(word)) for value, word in pairs)))
    return tuple(found)


def population_name(population: Any) -> str:
    """Return what a record calls the chosen people: the words, or the digest of a mask."""
    if isinstance(population, str):
        return population
    return MASK + blake2b(np.asarray(population).tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Execution:
    """Where and how an audit is carried out; it never changes a number.

    Parameters
    ----------
    n_jobs, engine
        Workers, and where they are: see `budge.audit.engines.run_blocks`.
    block_people
        People per block; chosen by the number of draws unless given.
    journal, overwrite
        A folder in which finished blocks are kept as the work goes on; the same call resumes. Of a stream of people it is the folder of the run.
        `overwrite` replaces a finished or another run that is there, which stays until the new one is finished; an unfinished one of the same design goes on.
    progress, finish
        Called with (people done, people in all), and with the result before the journal is marked as finished; `finish` returns the result. Without
        `progress` a line is shown on a terminal and in a notebook; False shows none.
    check
        Ask a few rows again before the audit and the starts again after it. A model that is random, changes its input, depends on the batch or
        drifts is an error; with ``"warn"`` it is a note of the result. Code without a digest is compared with a journal's by a few points. False asks
        nothing twice.
    wording
        What people, target, groups and features are called in sentences and reports: a `budge.Wording`, or a mapping of its fields.

    Examples
    --------
    >>> Execution(block_people=-1)
    Traceback (most recent call last):
    ...
    budge.errors.DesignError: block_people: block_people must be at least 1 (got -1); choose a whole number of at least 1
    """

    n_jobs: int = 1
    engine: Any = None
    block_people: int | None = None
    journal: str | Path | None = None
    overwrite: bool = False
    progress: Progress | bool | None = None
    check: bool | Literal["warn"] = True
    finish: Callable[[Any], Any] | None = None
    wording: Wording | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, int) or self.n_jobs == 0:
            raise DesignError("not a number of jobs", where="n_jobs", got=self.n_jobs, remedy="1 or more, or -1 for all cores")
        if self.block_people is not None:
            object.__setattr__(self, "block_people", whole(self.block_people, "block_people"))
        object.__setattr__(self, "wording", Wording.of(self.wording))
        if self.journal is not None and not isinstance(self.journal, str | Path):
            raise DesignError("must be the path of a folder", where="journal", got=self.journal)
        if not isinstance(self.overwrite, bool):
            raise DesignError("must be True or False", where="overwrite", got=self.overwrite)
        for name, of, given in (("progress", "(people done, people in all)", self.progress), ("finish", "the result", self.finish)):
            if given is not None and not callable(given) and not (name == "progress" and isinstance(given, bool)):
                raise DesignError(f"must be a function of {of}", where=name, got=given)
        if not isinstance(self.check, bool) and self.check != "warn":
            raise DesignError("must be True, False or 'warn'", where="check", got=self.check)

    def but(self, **changes: Any) -> Execution:
        """Return the execution with other values."""
        return replace(self, **changes)

    def people(self, draws: int, rows: int = 100_000) -> int:
        """Return the number of people per block, for so many draws each."""
        return self.block_people or max(1, rows // draws)
