"""What is served: models, people, an interaction model, and what is asked of them. A frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from budge.audit import audit
from budge.audit.design import Design, make_design
from budge.audit.result import Audit, Context
from budge.audit.run import _info, make_source, predictors_of
from budge.errors import InputError
from budge.frames import table
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.targets import from_dict

__all__ = ["Question", "from_run", "make_question"]


@dataclass(frozen=True, eq=False)
class Question:
    """Who is asked about what. Without people (a saved run alone) only `saved` can be looked at.

    `options` are the keyword arguments of `budge.audit`, the threshold apart, which the page can change.
    """

    im: InteractionModel
    predictors: Mapping[str, Predictor] = field(default_factory=dict)
    frame: pd.DataFrame | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: float = 0.1
    text: str = ""  # the spec as its author wrote it, comments and all
    title: str = ""
    saved: Audit | None = None
    _designs: dict[float, Design] = field(default_factory=dict, repr=False)

    @property
    def live(self) -> bool:
        """Whether anything can be computed anew."""
        return self.frame is not None

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.predictors) if self.live else (self.saved.models if self.saved is not None else ())

    def design(self, threshold: float) -> Design:
        """The design of an audit with this threshold, exactly as `budge.audit` makes it; made once."""
        if threshold in self._designs:
            return self._designs[threshold]
        wishes = {k: v for k, v in self.options.items() if k not in ("target", "population", "harm")}
        classes = next((p.classes for p in self.predictors.values() if p.classes is not None and p.output == "label"), None)
        if len(self._designs) > 100:
            self._designs.clear()
        return self._designs.setdefault(threshold, make_design(self.options["target"], classes=classes, threshold=threshold, **wishes))

    def audit(self, im: InteractionModel, threshold: float, people: Any = None, **more: Any) -> Audit:
        """`budge.audit` of this question: the edited model, everybody or some people by position."""
        assert self.frame is not None
        options = dict(self.options)
        frame = self.frame
        if people is not None:
            frame = frame.iloc[people]
            chosen = options.get("population", "all")
            if not isinstance(chosen, str):
                options["population"] = np.asarray(chosen)[people]
        return audit(dict(self.predictors), frame, im, threshold=threshold, check=False, **{**options, **more})


def make_question(
    model: Any, X: Any, im: InteractionModel, *, target: Any, threshold: float = 0.1, text: str = "", title: str = "",
    check: bool = True, **options: Any,
) -> Question:  # fmt: skip
    """From what a caller of `budge.audit` has; everything is checked now, on a few people, rather than at the first click."""
    if not isinstance(im, InteractionModel):
        raise InputError("the page needs an interaction model over a table", where="im", got=type(im).__name__)
    known = {"alpha", "claim", "n", "width", "margin", "power", "seed", "population", "method", "exact_limit", "adjust", "harm"}
    known |= {"on_invalid", "max_unresolved", "purpose"}
    strange = sorted(set(options) - known)
    if strange:
        raise InputError("is no option of the page", where=strange[0], got=options[strange[0]], remedy=f"known: {', '.join(sorted(known))}")
    frame = table(X)
    # An edit can put people outside its bounds: they are shown as such, nobody else is held up.
    options = {"target": target, "on_invalid": "skip", **options}
    source = make_source(im, frame, options["on_invalid"])
    predictors = predictors_of(model, source)
    question = Question(im, predictors, frame, options, threshold, text, title or im.name)
    question.design(threshold)
    few = np.linspace(0, len(frame) - 1, min(5, len(frame))).astype(int)
    audit(dict(predictors), frame.iloc[few], im, threshold=threshold, check=check, **{**options, "population": "all"})
    return question


def from_run(saved: Audit, model: Any = None, X: Any = None, *, title: str = "") -> Question:
    """From a saved run: alone it can be read, with its models and people it can be explored.

    The digests say whether these are the same models and people; what was computed then is not computed again.
    """
    info = saved.info
    if info["spec"] is None:
        raise InputError("the run has no spec: its interactions are Python code", where="run", remedy="call budge.web.serve in Python")
    im = InteractionModel.from_spec(info["spec"])
    if (model is None) != (X is None):
        missing = "--data" if X is None else "--model"
        raise InputError(
            "exploring a saved run takes its models and its people", where=missing, remedy=f"add {missing}, or leave both out to read it"
        )
    if model is None:
        return Question(im, threshold=info["design"]["threshold"], title=title or im.name, saved=saved)
    design = info["design"]
    if "function" in design["target"]:
        raise InputError("the target of the run is Python code", where="run", got=design["target"], remedy="call budge.web.serve in Python")
    if design["sequential"] is not None or design["proposal"] is not None:
        kind = "sequential" if design["sequential"] is not None else "weighted"
        raise InputError(f"the page does not repeat {kind} draws", where="run", remedy="leave --data and --model out to read it")
    options: dict[str, Any] = {
        key: design[key] for key in ("alpha", "claim", "n", "seed", "purpose", "method", "exact_limit", "adjust", "on_invalid")
    }
    frame = table(X)
    population: Any = info["population"]
    if population not in ("all", "outside"):
        population = frame.index.isin(saved.table.index)
    named = model if isinstance(model, Mapping) or len(saved.models) > 1 else {saved.models[0]: model}
    question = make_question(
        named, frame, im, target=from_dict(design["target"]), threshold=design["threshold"], title=title, population=population,
        harm=info["harm"], **options,
    )  # fmt: skip
    return _joined(question, saved)


def _hint(name: str) -> str:
    if name == "data_digest":
        return "columns that are not for the model are left out with --drop, and --id is as it was in the audit"
    return "serve with --spec to look at something else"


def _joined(question: Question, saved: Audit) -> Question:
    """The question with what the run found, if it is about the same models and people; an error that names what differs."""
    assert question.frame is not None
    source = make_source(question.im, question.frame, question.options["on_invalid"])
    now = _info(source, question.predictors, question.design(question.threshold), question.im, None, "all")
    for name in ("spec_digest", "data_digest", "model_digests"):
        if now[name] != saved.info[name]:
            raise InputError(
                f"the {name.replace('_', ' ')} differs from the run's", where="run", got=now[name],
                remedy=f"the run had {saved.info[name]}; {_hint(name)}",
            )  # fmt: skip
    context = Context(question.predictors, question.frame, question.im, source)
    whole = Audit(saved.table, saved.info, saved.witnesses, saved.changes, saved.notes, context)
    return Question(
        question.im, question.predictors, question.frame, question.options, question.threshold, question.text, question.title, whole
    )
