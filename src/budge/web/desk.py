"""Where requests are answered: declared models by key, results that were computed, and one worker that asks the models.

Models under audit need not be fit for threads, so one thread asks them, in turn. A newer wish of the same window stops the
older one at its next block of people. What the page gets is what `budge.audit` says of the people named.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from budge.audit.design import MASK, population_name
from budge.audit.result import Audit
from budge.errors import BudgeError, InputError, Problem
from budge.interaction import InteractionModel
from budge.spec import check, parse, to_text
from budge.spec.limits import SPEC_BYTES
from budge.web.edits import Edits, controls, model_key
from budge.web.everybody import everybody_record, first_people
from budge.web.people import Wish, people_record
from budge.web.person import saved_person, try_person
from budge.web.question import Question
from budge.web.records import error_record, problem_record
from budge.web.running import Pace, Piece, chosen_people, predictions, running

__all__ = ["Desk", "State", "SupersededError"]

KEPT_BASES, KEPT_RESULTS, KEPT_WARM = 200, 12, 3
FIRST_TOLD, NEXT_TOLD = 0.08, 0.8  #: seconds after which a running audit is told of, and again
FEWEST = 20  #: people of a subsample that is worth telling
PATIENCE = 30.0  #: seconds that everybody may take without being asked for
Tell = Callable[[dict[str, Any]], None]


class SupersededError(Exception):
    """A newer wish came: what was under way is dropped."""


@dataclass(frozen=True)
class State:
    """What the page looks at: a declared model, edits of it, a threshold."""

    base: str
    edits: Edits
    threshold: float


@dataclass
class _Found:
    some: Audit | None = None  # the largest subsample so far
    whole: Audit | None = None


class Desk:
    """Answers for one question; safe to be asked from several threads."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.first = model_key(question.im)
        self._bases: OrderedDict[str, tuple[InteractionModel, str]] = OrderedDict({self.first: (question.im, question.text)})
        self._found: OrderedDict[tuple[str, float], _Found] = OrderedDict()
        self._warm: OrderedDict[str, InteractionModel] = OrderedDict()
        self._lock = threading.Lock()
        self._stops: dict[str, threading.Event] = {}
        self.pace = Pace()
        self._before: dict[str, Any] | None = None  # what the models say of the people as they are
        self._chosen: dict[str, np.ndarray[Any, np.dtype[np.bool_]]] | None = None  # who is asked about, where that is not everybody
        self.order = first_people(len(question.frame)) if question.frame is not None else None
        if question.saved is not None:
            self._found[self.first, question.threshold] = _Found(whole=question.saved)

    # -- states and models ----------------------------------------------------------------------------------------------

    def state(self, record: Any) -> State:
        """A state from what the page sends."""
        if not isinstance(record, dict):
            raise InputError("is missing", where="state", got=record)
        base = record.get("base") or self.first
        tau = record.get("threshold", self.question.threshold)
        if not isinstance(tau, int | float) or isinstance(tau, bool) or not 0 < tau < 1:
            raise InputError("a threshold lies between 0 and 1", where="threshold", got=tau)
        if not isinstance(base, str):
            raise InputError("is a text", where="state.base", got=base)
        return State(base, Edits.read(record), float(tau))

    def base(self, key: str) -> tuple[InteractionModel, str]:
        """A declared model and its text."""
        with self._lock:
            found = self._bases.get(key)
        if found is None:
            raise InputError("this spec is not at hand any more", where="state.base", got=key, remedy="apply it again")
        return found

    def model(self, state: State) -> InteractionModel:
        """The edited model; the last few are kept with what was prepared for them."""
        made = state.edits.of(self.base(state.base)[0])
        key = model_key(made)
        with self._lock:
            # A copy: what is prepared for it goes when it goes, and the declared models stay light.
            warm = self._warm.pop(key, None) or made.with_measure(made.measure)
            self._warm[key] = warm
            while len(self._warm) > KEPT_WARM:
                self._warm.popitem(last=False)
        return warm

    def start(self) -> dict[str, Any]:
        """What the page needs to begin."""
        q = self.question
        options = q.saved.info["design"] if q.saved is not None and not q.live else q.design(q.threshold).to_dict()
        people = len(q.frame) if q.frame is not None else len(set(q.saved.table.index)) if q.saved is not None else 0
        target = q.saved.info["target"] if q.saved is not None else q.design(q.threshold).target.describe()
        describe = {n: p.describe() for n, p in q.predictors.items()} if q.live else dict(q.saved.info["models"]) if q.saved else {}
        return {
            "title": q.title or "Interaction model",
            "live": q.live,
            "people": people,
            **self._who(),
            "models": [{"name": name, "about": describe.get(name, "")} for name in q.models],
            "target": f"the output {target}",
            "population": _population_words(q),
            "design": {k: options[k] for k in ("alpha", "claim", "n", "why_n", "seed", "method", "exact_limit")},
            "groups": _groups(q),
            "harm": q.options.harm,
            "state": {"base": self.first, "off": [], "off_effects": [], "features": {}, "threshold": q.threshold},
            "model": controls(q.im),
        }

    def _who(self) -> dict[str, Any]:
        """How many people each model is asked about, and the first of them."""
        q = self.question
        if not q.live:
            return {"chosen": {m: len(q.saved.of_model(m)) for m in q.models} if q.saved is not None else {}, "first": 0}
        assert q.frame is not None
        if isinstance(q.options.population, str) and q.options.population == "all":
            return {"chosen": {m: len(q.frame) for m in q.models}, "first": 0}
        if self._before is None:
            self._before = predictions(q)
        self._chosen = self._chosen or chosen_people(q, self._before)
        places = np.flatnonzero(self._chosen[q.models[0]])
        return {"chosen": {m: int(mask.sum()) for m, mask in self._chosen.items()}, "first": int(places[0]) if len(places) else 0}

    # -- specs --------------------------------------------------------------------------------------------------------

    def text(self, state: State) -> str:
        """The spec of a state as text: its author's own where nothing is edited."""
        im, text = self.base(state.base)
        edited = state.edits.of(im)
        return text if text and edited is im else to_text(edited)

    def edited(self, state: State) -> list[str]:
        """What differs from what was served, in words; empty where nothing does."""
        im, _ = self.base(state.base)
        said = [] if model_key(state.edits.of(im)) == self.first else state.edits.describe(im)
        if state.base != self.first and model_key(state.edits.of(im)) != self.first:
            said.insert(0, "another text of the spec")
        if state.threshold != self.question.threshold:
            said.append(f"τ {self.question.threshold:g} → {state.threshold:g}")
        return said

    def export(self, state: State) -> str:
        """The spec of a state as a file: one that was edited is called so, since it is not the one that was planned."""
        im = state.edits.of(self.base(state.base)[0])
        said = [words for words in self.edited(state) if not words.startswith("τ")]  # the threshold is no part of a spec
        if not said:
            return self.text(state)
        renamed = InteractionModel(
            im.features, im.constraints, im.effects, im.latent, name=f"{im.name} (edited)".strip(), measure=im.measure
        )
        text = self.text(state)
        named = re.sub(r"(?m)^name:.*$", lambda _: f"name: {json.dumps(renamed.name)}", text, count=1)  # keeps its author's comments
        try:
            return named if parse(named, "yaml", name="spec.yaml") == renamed else to_text(renamed)
        except BudgeError:
            return to_text(renamed)

    def report(self, state: State, stop: threading.Event | None = None) -> tuple[Audit, str]:
        """Everybody's audit for a document, and its title: edits are named in both, for it will be read away from the page."""
        found, said = self.whole(state, stop), self.edited(state)
        name = self.question.title or "an audit"
        if not said:
            return found, ""
        note = Problem("", f"Edited on the page: {'; '.join(said)}. These are not the verdicts of the audit that was planned.", severity="warning")
        return replace(found, notes=(note, *found.notes)), f"Responsiveness: {name} (edited on the page: {'; '.join(said)})"

    def check(self, text: str, kind: str, *, deep: bool) -> dict[str, Any]:
        """What is wrong with a text; deep: also against the people."""
        try:
            im = self._parsed(text, kind)
        except BudgeError as error:
            return {"ok": False, "key": None, **error_record(error), "report": None}
        record: dict[str, Any] = {"ok": True, "key": model_key(im), "problems": [problem_record(w) for w in im.warnings], "report": None}
        if deep and self.question.frame is not None:
            report = check(im, self.question.frame)
            record["report"] = {"ok": report.ok, "sentences": str(report).split("\n")}
        return record

    def apply(self, text: str, kind: str) -> dict[str, Any]:
        """A text becomes a declared model that states can build on."""
        im = self._parsed(text, kind)
        key = model_key(im)
        with self._lock:
            self._bases[key] = (im, text if kind == "yaml" else "")
            while len(self._bases) > KEPT_BASES:
                old = next(k for k in self._bases if k != self.first)
                del self._bases[old]
        return {"base": key, "model": controls(im)}

    def _parsed(self, text: str, kind: str) -> InteractionModel:
        if kind not in ("yaml", "json", "toml"):
            raise InputError("a spec is yaml, json or toml", where="kind", got=kind)
        if len(text.encode("utf-8", "surrogatepass")) > SPEC_BYTES:
            raise InputError("is too large for a spec", where="spec", got=f"{len(text):,} characters", remedy=f"at most {SPEC_BYTES:,} bytes are read")
        if not text.strip():
            raise InputError("is empty", where=f"spec.{kind}:1", remedy="a spec begins with `budge: 1`")
        im = parse(text, cast(Literal["yaml", "json", "toml"], kind), name=f"spec.{kind}")
        if self.question.frame is not None:
            im.coding.encode(self.question.frame)  # the columns are there and can be read
        return im

    # -- people -------------------------------------------------------------------------------------------------------

    def people(self, state: State, wish: Wish) -> dict[str, Any]:
        """One page of the list, with what is known so far."""
        found = self._at(state)
        best = found.whole or found.some
        if wish.model and wish.model not in self.question.models:
            raise InputError("no such model", where="model", got=wish.model)
        before = self._start_found()
        same = best is not None and before is not None and best is before.whole
        return people_record(self.question, best, None if before is None or same else before.whole, wish, self._chosen)

    def _at(self, state: State) -> _Found:
        key = (model_key(state.edits.of(self.base(state.base)[0])), state.threshold)
        with self._lock:
            return self._found.get(key) or _Found()

    def _start_found(self) -> _Found | None:
        with self._lock:
            return self._found.get((self.first, self.question.threshold))

    def whole(self, state: State, stop: threading.Event | None = None) -> Audit:
        """Everybody's audit, computed unless it is at hand."""
        found = self._at(state)
        if found.whole is not None:
            return found.whole
        *_, last = self._pieces(self.model(state), state, stop or threading.Event())
        result = self._judged(state, last.audit())
        self._keep(state, whole=result)
        return result

    def one(self, state: State, place: Any) -> tuple[Audit, Any]:
        """Return the audit of one person, and their label."""
        frame = self.question.frame
        if frame is None or not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(frame):
            raise InputError("nobody is at this place", where="person", got=place)
        return self.question.audit(self.model(state), state.threshold, [place]), frame.index[place]

    # -- looking ------------------------------------------------------------------------------------------------------

    def enter(self, window: str) -> threading.Event:
        """A window's new wish: the one before is told to stop."""
        stop = threading.Event()
        with self._lock:
            old = self._stops.pop(window, None)
            if old is not None:
                old.set()
            self._stops[window] = stop
            while len(self._stops) > 100:
                self._stops.pop(next(iter(self._stops)))
        return stop

    def look(self, state: State, place: int | None, *, whole: bool | None, stop: threading.Event, tell: Tell) -> None:
        """The answer piece by piece: the person first, then a subsample, then everybody (if that does not take too long)."""
        began = time.perf_counter()
        if not self.question.live:
            self._read_only(place, tell)
            return
        self._go_on(stop)
        im = self.model(state)
        tell({"kind": "model", "key": model_key(im), "parts": len(im.parts), "moving": sorted(im.moving), "warnings": [str(w) for w in im.warnings]})
        if place is not None:
            tell(try_person(self.question, im, state.threshold, place))
        try:
            self._everybody(im, state, whole, stop, tell)
        except BudgeError as error:
            tell({"kind": "everybody_error", **error_record(error)})
        tell({"kind": "end", "seconds": time.perf_counter() - began})

    @staticmethod
    def _go_on(stop: threading.Event) -> None:
        if stop.is_set():
            raise SupersededError

    def _read_only(self, place: int | None, tell: Tell) -> None:
        saved = self.question.saved
        assert saved is not None
        if place is not None:
            tell({"kind": "person", **saved_person(self.question, place)})
        tell(everybody_record(saved, None, whole=True, of=len(set(saved.table.index))))
        tell({"kind": "end", "seconds": 0.0})

    def _everybody(self, im: InteractionModel, state: State, whole: bool | None, stop: threading.Event, tell: Tell) -> None:
        """Those asked so far, at moments; then all. Too slow a model is asked about all only if that is wished."""
        found = self._at(state)
        if found.whole is not None:
            tell(self._told(found.whole, whole=True))
            return
        told = 0.0
        for piece in self._pieces(im, state, stop):
            if piece.whole:
                result = self._judged(state, piece.audit())
                self._keep(state, whole=result)
                tell(self._told(result, whole=True))
                return
            slow = piece.seconds_for_all > PATIENCE and piece.seconds > PATIENCE / 20 and whole is not True
            due = piece.seconds >= FIRST_TOLD if not told else piece.seconds - told >= max(NEXT_TOLD, told)
            if piece.done >= FEWEST and (due or slow):
                told = piece.seconds
                some = self._judged(state, piece.audit())
                self._keep(state, some=some)
                tell({**self._told(some, whole=False, of=piece.of), "seconds_for_all": piece.seconds_for_all, "stopped": slow})
                if slow:
                    return
            elif told:
                tell({"kind": "progress", "done": piece.done, "of": piece.of})

    def _pieces(self, im: InteractionModel, state: State, stop: threading.Event) -> Iterator[Piece]:
        assert self.order is not None
        if self._before is None:
            self._before = predictions(self.question)
        return running(self.question, im, state.threshold, self._before, self.order, self.pace, lambda: self._go_on(stop))

    def _told(self, found: Audit, *, whole: bool, of: int = 0) -> dict[str, Any]:
        assert self.order is not None
        before = self._start_found()
        start = before.whole if before is not None else None
        return everybody_record(found, None if start is found else start, whole=whole, of=of or len(self.order))

    def _judged(self, state: State, found: Audit) -> Audit:
        """Return the result without its declaration of harm where the model was edited: the declaration was about the question as served."""
        if not found.design.harm or not self.edited(state):
            return found
        design = replace(found.design, harm=None)
        return replace(found, design=design, info={**found.info, "harm": None, "design": design.to_dict()})

    def _keep(self, state: State, *, some: Audit | None = None, whole: Audit | None = None) -> None:
        key = (model_key(state.edits.of(self.base(state.base)[0])), state.threshold)
        first = (self.first, self.question.threshold)
        with self._lock:
            old = self._found.pop(key, None) or _Found()
            self._found[key] = _Found(some or old.some, whole or old.whole)
            while len(self._found) > KEPT_RESULTS:
                gone = next(k for k in self._found if k != first)
                del self._found[gone]


def _population_words(question: Question) -> str:
    population = question.saved.info["population"] if question.saved is not None else population_name(question.options.population)
    return "chosen people" if population.startswith(MASK) else {"outside": "outside the target"}.get(population, population)


def _groups(question: Question) -> list[str]:
    """Return the columns with few values: people can be told apart by them."""
    if question.frame is None:
        return []
    frame = question.frame
    return [str(c) for c in frame.columns if isinstance(c, str) and 2 <= frame[c].nunique(dropna=True) <= 8]
