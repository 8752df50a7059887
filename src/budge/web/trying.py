"""Trying a change: what one person can choose, what follows from it, and what the model answers.

Parts of the model are independent, so that each has its own controls. The points of a finite part are listed, and a control holds the levels that occur;
elsewhere a control holds the moves of one feature. What follows from others moves along, and `InteractionModel.feasible` is the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Asker
from budge.audit.cases import Reached
from budge.constraints.base import Constraint
from budge.constraints.links import induced
from budge.effects import draw_effects
from budge.errors import BudgeError, InputError
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.reach.chance import Chance
from budge.reach.streams import Stream, keys_of
from budge.report.cases import Words, axes_in
from budge.report.people import number
from budge.web.person import Person, aim
from budge.wording import shown

__all__ = ["Control", "attempt", "controls_of", "place_of"]

FloatArray = npt.NDArray[np.float64]
MOST_LISTED = 5_000  # points of a part that are listed for its controls
MOST_BUTTONS = 6  # levels that are buttons; more are a slider
STEPS = 100  # of the slider of a real feature, or of one with many values
DRAWS = 200  # of what an effect does


@dataclass(frozen=True)
class Control:
    """One choice: joint values of some columns, their texts, and which of them is today's (-1: none)."""

    name: str
    columns: tuple[int, ...]
    values: FloatArray  # (levels, columns)
    texts: tuple[str, ...]
    now: int

    def record(self) -> dict[str, Any]:
        """Return what the page shows: buttons for few levels, a slider for more."""
        return {"name": self.name, "levels": list(self.texts), "now": self.now, "slider": len(self.texts) > MOST_BUTTONS}


@dataclass(frozen=True)
class _Choices:
    """The controls of one part, and its points where they are listed."""

    part: Part
    controls: tuple[Control, ...]
    points: FloatArray | None  # one column per feature of the part
    columns: tuple[int, ...]


def controls_of(person: Person) -> list[Control]:
    """Return the controls of a person, part by part."""
    return [control for choices in _choices(person) for control in choices.controls]


def _choices(person: Person) -> list[_Choices]:
    return person.keep("choices", "", lambda: [choices for part in person.im.parts if (choices := _of_part(person, part)).controls])


def _of_part(person: Person, part: Part) -> _Choices:
    columns = tuple(j for j, f in enumerate(person.im.features) if f.name in part.by_name)
    moving = [j for j in columns if person.im.features[j].name in person.im.moving]
    if not moving:
        return _Choices(part, (), None, columns)
    listed = _listed(person, part, (*part.constraints, *part.linkages))
    if listed is None:
        return _Choices(part, tuple(c for j in columns if (c := _moves(person, j)) is not None), None, columns)
    model, points = listed
    start = person.start[list(columns)]
    axes = axes_in(points, start, model, listed=True)
    whole = Reached(tuple(model.features), points, start, np.zeros(len(points), bool), np.ones(len(points)), len(points), True)
    words = Words(whole, axes, person.nouns, model)
    found = [
        Control(words.axis(k), tuple(columns[j] for j in axis.columns), axis.levels, tuple(words.level(k, i) for i in range(len(axis.levels))), axis.start)
        for k, axis in enumerate(axes)
    ]
    return _Choices(part, tuple(found), points, columns)


def _listed(person: Person, part: Part, rules: Sequence[Constraint]) -> tuple[InteractionModel, FloatArray] | None:
    """Return the model of one part under some of its rules and all its points as numbers; None where they cannot be listed."""
    if part.effects or not all(f.discrete or f.name not in person.im.moving for f in part.features):
        return None
    try:
        model = InteractionModel([f for f in person.im.features if f.name in part.by_name], rules)
        return model, model.coding.encode(model.enumerate(person.frame, limit=MOST_LISTED, on_invalid="keep").points)
    except BudgeError:
        return None


def _moves(person: Person, j: int) -> Control | None:
    """Return the control of one feature by its own moves; None where it has none."""
    f, start = person.im.features[j], float(person.start[j])
    low, high = (float(end) for end in f.moves(start))
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return None
    whole = f.discrete and high - low <= STEPS
    steps = np.arange(low, high + 1) if whole else np.linspace(low, high, STEPS + 1)
    steps = np.unique(np.append(np.round(steps) if f.discrete else steps, 0.0 if low <= 0 <= high else low))
    values = (start + steps)[:, None]
    if f.levels is not None:
        texts = tuple(person.nouns.value(f.name, f.levels[int(v)]) for v in values[:, 0])
    else:
        texts = tuple(person.nouns.value(f.name, int(v)) if f.discrete else number(v) for v in values[:, 0])
    now = np.flatnonzero(steps == 0)
    return Control(person.nouns.feature(f.name), (j,), values, texts, int(now[0]) if len(now) else -1)


def place_of(person: Person, point: FloatArray) -> list[int] | None:
    """Return the level of each control at a point; None where one has no such level."""
    found = []
    for control in controls_of(person):
        here = np.flatnonzero((control.values == point[list(control.columns)]).all(axis=1))
        if not len(here):
            return None
        found.append(int(here[0]))
    return found


def attempt(person: Person, model: str, at: Any) -> dict[str, Any]:
    """Return what comes of a choice: one level per control (None: as today). Nothing is asked about a point that cannot be reached."""
    controls, target = controls_of(person), aim(person.nouns)
    today = person.keep("today", model, lambda: _answered(person, model, person.start, today=True))
    if at is None:
        return {"feasible": True, **today, **_told(today, target)}
    if not isinstance(at, list) or len(at) != len(controls) or not all(isinstance(i, int) and not isinstance(i, bool) for i in at):
        raise InputError(f"is a list of {len(controls)} whole numbers, one per control", where="at", got=at)
    for control, i in zip(controls, at):
        if not 0 <= i < len(control.texts):
            raise InputError(f"{control.name} has {len(control.texts)} levels", where="at", got=i)
    point, why = _reached(person, at)
    if why:
        return {"feasible": False, "state": "barred", "head": "Cannot be reached", "answer": "", "hints": why, "output": None, "score": None}
    found = _answered(person, model, point, today=False)
    return {"feasible": True, **found, **_told(found, target, today["output"])}


def _told(found: dict[str, Any], target: str, today: str | None = None) -> dict[str, Any]:
    """Return what the model answers about a point in words, beside its output `today`."""
    drawn, output = found["draws"] > 1, found["output"]
    state = "open" if not found["answered"] else "draws" if drawn else "yes" if found["hit"] else "no"
    heads = {"open": "No answer", "yes": f"Leads to {target}", "no": f"Does not lead to {target}"}
    head = heads.get(state, f"Leads to {target} in {found['hits']:,} of {found['draws']:,} draws of what follows")
    answer = "" if output is None else f"{'median output' if drawn else 'output'} {output}{'' if today is None else f' (today {today})'}"
    return {"state": state, "head": head, "answer": answer, "hints": [f"{name} {to} (today {start}, follows)" for name, start, to in found["follows"]]}


def _reached(person: Person, at: Sequence[int]) -> tuple[FloatArray, list[str]]:
    """Return the point of a choice with what follows from it, and why it cannot be reached."""
    point, why, first = person.start.copy(), [], 0
    for choices in _choices(person):
        chosen = at[first : first + len(choices.controls)]
        first += len(choices.controls)
        fixed = [j for control in choices.controls for j in control.columns]
        point[fixed] = np.concatenate([control.values[i] for control, i in zip(choices.controls, chosen)])
        if choices.points is None:
            _follow(person, choices.part, point)
        else:
            spots = [choices.columns.index(j) for j in fixed]
            same = np.flatnonzero((choices.points[:, spots] == point[fixed]).all(axis=1))
            if len(same):
                point[list(choices.columns)] = choices.points[same[0]]
            else:
                why += _forbidden(person, choices, spots, point[fixed])
    if not why and not _feasible(person.im, person, point):
        rules = [c for c in person.im.constraints if _feasible(person.im.without(c), person, point)]
        why = [_rule(c) for c in rules] or ["No single rule forbids it: the limits of the features and several rules do together."]
    return point, why


def _feasible(im: InteractionModel, person: Person, point: FloatArray) -> bool:
    change = np.where(np.isnan(person.start), 0.0, point - person.start)
    return bool(im.feasible(person.frame, change[None, :])[0])


def _forbidden(person: Person, choices: _Choices, spots: list[int], wanted: FloatArray) -> list[str]:
    """Return the rules of a part without any one of which the choice could be reached."""
    rules = [*choices.part.constraints, *choices.part.linkages]
    found = []
    for rule in rules:
        freer = _listed(person, choices.part, [c for c in rules if c is not rule])
        if freer is not None and (freer[1][:, spots] == wanted).all(axis=1).any():
            found.append(_rule(rule))
    return found or [f"Several rules forbid it together: {'; '.join(shown(c.name or c.label) for c in rules)}."]


def _rule(c: Constraint) -> str:
    return f"“{shown(c.name or c.label)}” forbids it: {shown(c.describe())}"


def _follow(person: Person, part: Part, point: FloatArray) -> None:
    """Move what is linked to the choice; where a rule leaves room, by as little as it allows."""
    place = {f.name: j for j, f in enumerate(person.im.features)}
    start = {name: np.asarray(person.start[place[name]]) for name in part.names}
    action = {name: np.asarray(point[place[name]] - start[name]) for name in part.names}
    for name in part.order:
        if name not in part.links or np.isnan(start[name]):
            continue
        low, high = (float(end) for end in induced(name, part.links[name], start, action))
        value = float(start[name] + action[name]) + min(max(low, 0.0), high)
        floor, ceiling = (float(end) for end in part.by_name[name].reach(start[name]))
        point[place[name]] = min(max(value, floor), ceiling) if part.links[name][0].on_exceed == "clip" else value


def _answered(person: Person, model: str, point: FloatArray, *, today: bool) -> dict[str, Any]:
    """Return what the model answers about a point: one answer, or shares of draws where an effect follows."""
    im, question = person.im, person.question
    values = _effects(person, point) if im.effects and not today else point[None, :]
    rows = im.coding.decode(values, person.frame, np.zeros(len(values), dtype=np.intp)) if not today else person.frame
    before = person.audit.rows[model].prediction
    answers = Asker.of(model, question.predictors[model], person.audit.design.target, before)(rows, np.repeat(before[[0]], len(rows)))
    numbers = question.numbers(model)
    scores = None if numbers is None else numbers.of(rows, answers, before[0])
    if scores is not None and person.scores(model) is None:
        scores = None  # the same numbers contradict other answers about this person
    known = answers.good.any()
    score = float(np.nanmedian(scores.values)) if scores is not None and not np.isnan(scores.values).all() else None
    outputs = sorted({shown(v) for v in answers.outputs[answers.good]})
    moved = [j for j in range(len(point)) if not np.isnan(point[j]) and (values[:, j] != person.start[j]).any()]
    chosen = {j for control in controls_of(person) for j in control.columns}
    drawn = {e.feature for e in im.effects}
    return {
        "answered": bool(known), "hit": bool(answers.hit.all()) if known else None, "hits": int(answers.hit.sum()), "draws": len(values),
        "score": score, "output": (None if not known else scores.text(score) if scores is not None and score is not None else ", ".join(outputs[:3])),
        "follows": [_followed(person, j, values[:, j]) for j in moved if j not in chosen or im.features[j].name in drawn],
    }  # fmt: skip


def _effects(person: Person, point: FloatArray) -> FloatArray:
    """Return draws of a point with what its effects do, by the audit's own random numbers."""
    im, names = person.im, [f.name for f in person.im.features]
    x = {name: np.full(DRAWS, person.start[j]) for j, name in enumerate(names)}
    change = {name: np.nan_to_num(np.full(DRAWS, point[j] - person.start[j])) for j, name in enumerate(names)}
    action: dict[str, FloatArray] = {}
    for part in im.parts:
        own = {name: x[name] for name in part.names}
        try:
            action |= part.own_actions(own, {name: change[name] for name in part.names})
        except (BudgeError, KeyError):
            action |= {name: change[name] for name in part.names}
    design = person.audit.design
    chance = Chance(Stream(keys_of(names, person.start[None, :], design.seed, design.purpose)), 0, DRAWS)
    values = np.repeat(point[None, :], DRAWS, axis=0)
    for name, (_, reached) in draw_effects(im.effects, im.latent, im.by_name, x, action, change, chance, DRAWS).items():
        values[:, names.index(name)] = reached
    return values


def _followed(person: Person, j: int, column: FloatArray) -> list[str]:
    f = person.im.features[j]
    start = person.nouns.value(f.name, person.frame[f.name].iloc[0])
    if f.levels is not None:
        reached = " or ".join(person.nouns.value(f.name, f.levels[int(v)]) for v in np.unique(column)[:4])
    else:
        low, high = np.quantile(column, [0.05, 0.95], method="nearest")
        reached = (person.nouns.level(f.name, float(low)) or number(low)) if low == high else f"{number(low)} to {number(high)} in nine of ten draws"
    return [person.nouns.feature(f.name), start, reached]
