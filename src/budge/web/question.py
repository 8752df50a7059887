"""What is served: models, people, an interaction model, and what is asked of them. A frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from budge.audit import audit
from budge.audit.ask import predictors_of
from budge.audit.design import MASK, Design, Execution, population_name
from budge.audit.recourse import Recourse, plans_of
from budge.audit.result import Audit
from budge.audit.rows import Context
from budge.audit.sources import make_source
from budge.audit.storage import population_of
from budge.errors import InputError
from budge.frames import table
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.report.outputs import Numbers, numbers_of
from budge.wording import Wording, check_names

__all__ = ["Question", "asked_words", "from_run", "groups_of", "make_question"]

PLAN_SECONDS = 2.0  # for the least change of a person: the page waits for it


@dataclass(frozen=True, eq=False)
class Question:
    """Who is asked about what. Without people (a saved run alone) only `saved` can be looked at.

    `options` is the design of the audit; the page can change its threshold.
    """

    im: InteractionModel
    predictors: Mapping[str, Predictor] = field(default_factory=dict)
    frame: pd.DataFrame | None = None
    options: Design = field(default_factory=Design)
    threshold: float = 0.1
    text: str = ""  # the spec as its author wrote it, comments and all
    title: str = ""
    saved: Audit | None = None
    wording: Wording = field(default_factory=Wording)
    _designs: dict[float, Design] = field(default_factory=dict, repr=False)
    _settlers: dict[str, Any] = field(default_factory=dict, repr=False)  # what is known of the models' structures
    _numbers: dict[str, Numbers | None] = field(default_factory=dict, repr=False)

    @property
    def live(self) -> bool:
        """Whether anything can be computed anew."""
        return self.frame is not None

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.predictors) if self.live else (self.saved.models if self.saved is not None else ())

    @property
    def nouns(self) -> Wording:
        """The words of the user, with no and yes for binary features, as in a report."""
        return self.wording.of_model(self.im)

    def design(self, threshold: float) -> Design:
        """Return the design of an audit with this threshold, as `budge.audit` makes it; made once."""
        if threshold in self._designs:
            return self._designs[threshold]
        classes = next((p.classes for p in self.predictors.values() if p.classes is not None and p.output == "label"), None)
        if len(self._designs) > 100:
            self._designs.clear()
        made = self.options if threshold == self.options.threshold else self.options.but(threshold=threshold)
        return self._designs.setdefault(threshold, made.aimed(classes))

    def plan(self, im: InteractionModel, threshold: float, place: int, model: str) -> Recourse:
        """Return the least change that attains the target for the person at a place, under one model."""
        assert self.frame is not None
        context = Context(self.predictors, self.frame, im, make_source(im, self.frame, "keep"), self._settlers)
        return plans_of(context, model, place, self.design(threshold), k=1, cost=None, seconds=PLAN_SECONDS, polished=False)

    def numbers(self, model: str) -> Numbers | None:
        """Return how the numbers behind a model's answers are had; None where it answers labels alone."""
        if model not in self._numbers:
            self._numbers[model] = numbers_of(self.predictors[model], self.design(self.threshold).target, self.frame)
        return self._numbers[model]

    def audit(self, im: InteractionModel, threshold: float, people: Any) -> Audit:
        """Return `budge.audit` of some people by position, whether they have the target or not."""
        assert self.frame is not None
        design = self.design(threshold).but(population="all")
        return audit(dict(self.predictors), self.frame.iloc[people], im, design=design, execution=Execution(check=False, wording=self.wording))


def make_question(
    model: Any, X: Any, im: InteractionModel, *, target: Any = None, threshold: float = 0.1, text: str = "", title: str = "",
    check: bool = True, design: Design | None = None, wording: Wording | Mapping[str, Any] | None = None, **options: Any,
) -> Question:  # fmt: skip
    """Return the question of what a caller of `budge.audit` has; everything is checked now, on a few people, rather than at the first click.

    Parameters
    ----------
    design, options
        A design, or fields of it by name.
    wording
        What people, target, groups and features are called; see `budge.Wording`.
    """
    if not isinstance(im, InteractionModel):
        raise InputError("the page needs an interaction model over a table", where="im", got=type(im).__name__)
    known = {f.name for f in fields(Design)} - {"sequential", "proposal", "why_n", "family", "testing"}
    strange = sorted(set(options) - known)
    if strange:
        raise InputError("is no option of the page", where=strange[0], got=options[strange[0]], remedy=f"known: {', '.join(sorted(known))}")
    options = {name: value for name, value in options.items() if value is not None}
    if design is None:
        # An edit can put people outside its bounds: they are shown as such, nobody else is held up.
        design = Design(**{"target": target, "threshold": threshold, "on_invalid": "skip", **options})
    elif options or target is not None:
        design = design.but(**({} if target is None else {"target": target}), **options)
    if not 0 < design.threshold < 1:
        remedy = "budge.audit takes the threshold 0"
        raise InputError("the page needs a threshold between 0 and 1", where="threshold", got=design.threshold, remedy=remedy)
    _check_draws(design, "design", "use a fixed number of draws")
    frame = table(X)
    make_source(im, frame, design.on_invalid)  # what is wrong with the people is an error now
    predictors = predictors_of(model, table=True)
    question = Question(im, predictors, frame, design, design.threshold, text, title or im.name, wording=Wording.of(wording))
    check_names(question.wording, im, frame.columns if any(labels for _, labels in design.groups) else frame)
    few = np.linspace(0, len(frame) - 1, min(5, len(frame))).astype(int)
    trial = question.design(design.threshold).but(population="all")
    audit(dict(predictors), frame.iloc[few], im, design=trial, execution=Execution(check=check))
    return question


def from_run(saved: Audit, model: Any = None, X: Any = None, *, title: str = "") -> Question:
    """Return the question of a saved run: alone it can be read, with its models and people it can be explored.

    The digests tell whether these are the same models and people; what was computed then is not computed again.
    """
    info, design = saved.info, saved.design
    if info["spec"] is None:
        raise InputError("the run has no spec: its interactions are Python code", where="run", remedy="call budge.web.serve in Python")
    im = InteractionModel.from_spec(info["spec"])
    if (model is None) != (X is None):
        missing = "--data" if X is None else "--model"
        raise InputError(
            "exploring a saved run takes its models and its people", where=missing, remedy=f"add {missing}, or leave both out to read it"
        )
    if model is None:
        return Question(im, options=design, threshold=design.threshold, title=title or im.name, saved=saved, wording=saved.wording)
    target = info["design"]["target"]
    if isinstance(target, Mapping) and "function" in target:
        raise InputError("the target of the run is Python code", where="run", got=target, remedy="call budge.web.serve in Python")
    _check_draws(design, "run", "leave --data and --model out to read it")
    frame = table(X)
    named = model if isinstance(model, Mapping) or len(saved.models) > 1 else {saved.models[0]: model}
    own = [group for group in design.groups if group[0] in frame.columns]  # a group may be a column that the model does not get
    question = make_question(named, frame, im, design=design.but(population=population_of(saved, frame), groups=own), title=title)
    return _joined(replace(question, wording=saved.wording), saved)


def _check_draws(design: Design, where: str, remedy: str) -> None:
    if design.sequential or design.proposal is not None:
        raise InputError(f"the page does not repeat {'sequential' if design.sequential else 'weighted'} draws", where=where, remedy=remedy)


def _hint(name: str) -> str:
    if name == "data_digest":
        return "columns that are not for the model are left out with --drop, and --id is as it was in the audit"
    return "serve with --spec to look at something else"


def _joined(question: Question, saved: Audit) -> Question:
    """Return the question with what the run found, if it is about the same models and people; an error names what differs."""
    assert question.frame is not None
    source = make_source(question.im, question.frame, question.options.on_invalid)
    now = {
        "spec_digest": question.im.digest,
        "data_digest": source.digest(),
        "model_digests": {name: p.digest() for name, p in question.predictors.items()},
    }
    for name, value in now.items():
        if value != saved.info[name]:
            raise InputError(
                f"the {name.replace('_', ' ')} differs from the run's", where="run", got=value,
                remedy=f"the run had {saved.info[name]}; {_hint(name)}",
            )  # fmt: skip
    return replace(question, saved=replace(saved, context=Context(question.predictors, question.frame, question.im, source)))


def asked_words(question: Question, asked: Mapping[str, int], people: int) -> str:
    """Return the target and whom each model is asked about, in words; `asked`: how many by model, of so many people."""
    saved, nouns, numbers = question.saved, question.wording, list(asked.values())
    target = saved.info["target"] if saved is not None else question.design(question.threshold).target.describe()
    population = saved.info["population"] if saved is not None else population_name(question.options.population)
    alike = len(set(numbers)) == 1
    own = f"{numbers[0]:,}" if alike else ", ".join(f"{m} {k:,}" for m, k in asked.items())
    whole = "" if alike and numbers[0] == people else f" of {people:,}"
    which = "chosen people" if population.startswith(MASK) else {"outside": "outside the target"}.get(population, population)
    told = f"Target: {nouns.target({'target': target})} · {own} {nouns.people(numbers[0] if alike else 2)}{whole}{'' if which == 'all' else f' ({which})'}"
    return told if question.live else f"{told} · a saved run, to be read"


def groups_of(question: Question) -> list[str]:
    """Return the columns with few values, by which people can be told apart; of a saved run alone the groups of its design."""
    if question.frame is None:
        return [] if question.saved is None else [str(c) for c in question.saved.rows[question.models[0]].groups.columns]
    frame = question.frame
    return [str(c) for c in frame.columns if isinstance(c, str) and 2 <= frame[c].nunique(dropna=True) <= 8]
