"""One run under exploration: declared models by key, results that were computed, and one worker that asks the models.

Models under audit need not be fit for threads, so one thread asks them, in turn. A newer wish of the same window stops the
older one at its next block of people. What the page gets is what `budge.audit` returns for the people named.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from budge.audit.result import Audit, same_cell
from budge.errors import BudgeError, InputError, Problem, nearest
from budge.interaction import InteractionModel
from budge.report.answer import category_words
from budge.report.compared import short_words
from budge.report.document import render
from budge.web.edits import Edits, controls, model_key, rules_of
from budge.web.everyone import everyone_record, first_people
from budge.web.people import SHOWN, Found, Known, Wish, people_record
from budge.web.person import MOST_POINTS, Person, aim, counted, model_facts, saved_person, try_person
from budge.web.question import Question, asked_words, groups_of
from budge.web.records import Last, error_record
from budge.web.rules import Freed, lines_of, row_without
from budge.web.running import Pace, Piece, chosen_people, predictions, running
from budge.web.specs import Specs, State
from budge.web.trying import attempt, controls_of, place_of

__all__ = ["Session", "SupersededError"]

KEPT_RESULTS, KEPT_PEOPLE, KEPT_LINES, KEPT_WINDOWS = 12, 8, 2000, 100
FIRST_TOLD, NEXT_TOLD = 0.08, 0.8  #: seconds after which a running audit is told of, and again
FEWEST = 20  #: people of a subsample that is worth telling
WAIT = 2.0  #: seconds after which the most harmed of a subsample is opened
PATIENCE = 30.0  #: seconds that everyone may take without being asked for
Tell = Callable[[dict[str, Any]], None]


class SupersededError(Exception):
    """A newer wish came: what was under way is dropped."""


class Session:
    """Answers for one question; safe to be asked from several threads."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.specs = Specs(question)
        self.first = self.specs.first
        self._found: Last[tuple[str, float], Found] = Last(KEPT_RESULTS, (self.first, question.threshold))
        self._people: Last[tuple[str, float, int], Person] = Last(KEPT_PEOPLE)
        self._freed: dict[tuple[str, float], Freed] = {}
        self._lines: Last[tuple[str, float, str, int], dict[str, Any]] = Last(KEPT_LINES)  # a person without one rule, by model
        self._lock = threading.Lock()
        self._stops: Last[str, threading.Event] = Last(KEPT_WINDOWS)
        self.pace = Pace()
        self._chosen: dict[str, np.ndarray[Any, np.dtype[np.bool_]]] | None = None  # who is asked about, where that is not everyone
        self.order = first_people(len(question.frame)) if question.frame is not None else None
        if question.saved is not None:
            self._found[self.first, question.threshold] = Found(whole=question.saved)

    def named(self, model: Any) -> str:
        """Return the name of a model, the first unless one is given."""
        if model in (None, ""):
            return self.question.models[0]
        if not isinstance(model, str) or model not in self.question.models:
            raise InputError("no such model", where="model", got=model, remedy=nearest(str(model), self.question.models))
        return model

    def place(self, who: Any) -> int:
        """Return the place of the person of a label; ``#17`` is the person at place 17, where labels repeat."""
        if not isinstance(who, str) or who not in self._places:
            raise InputError("nobody has this label", where="who", got=who)
        return self._places[who]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(label): place for place, label in reversed(self._labels)} | {f"#{place}": place for place, _ in self._labels}

    @cached_property
    def _before(self) -> dict[str, Any]:
        """What the models answer about the people as they are."""
        return predictions(self.question)

    @cached_property
    def _labels(self) -> list[tuple[int, Any]]:
        """Places and labels of everyone who was given; of a run alone, of those who were asked about."""
        q = self.question
        if q.frame is not None:
            return list(enumerate(q.frame.index))
        assert q.saved is not None
        return sorted({(int(p), label) for rows in q.saved.rows.values() for p, label in zip(rows.place, rows.index)}, key=lambda pair: pair[0])

    def start(self) -> dict[str, Any]:
        """Return what the page needs to begin."""
        q = self.question
        return {
            "title": q.title or "Interaction model", "live": q.live, "models": list(q.models), "groups": groups_of(q), "aim": aim(q.wording),
            "asked": asked_words(q, self._asked(), len(self._labels)), "names": SHOWN | short_words(q.options.claim),
            "state": {"base": self.first, "off": [], "features": {}, "threshold": q.threshold}, "model": controls(q.im, q.wording),
        }  # fmt: skip

    def _asked(self) -> dict[str, int]:
        """Return how many people each model is asked about."""
        q = self.question
        if not q.live:
            return {m: len(q.saved.rows[m].place) for m in q.models} if q.saved is not None else {}
        assert q.frame is not None
        if isinstance(q.options.population, str) and q.options.population == "all":
            return {m: len(q.frame) for m in q.models}
        self._chosen = self._chosen or chosen_people(q, self._before)
        return {m: int(mask.sum()) for m, mask in self._chosen.items()}

    # -- people -------------------------------------------------------------------------------------------------------

    def people(self, state: State, wish: Wish) -> dict[str, Any]:
        """Return some of the list, with what is known so far."""
        wish = replace(wish, model=self.named(wish.model))
        found, before = self._at(state), self._start_found()
        declared = {m: self._known(before, m) for m in self.question.models}
        edited = None if found is before or found.best is None else self._known(found, wish.model)
        labels = np.full(len(declared[wish.model].category), "", dtype=object)
        for place, label in self._labels:
            labels[place] = label
        record = people_record(self.question, labels, declared, edited, wish, self._groups_at(before, wish.model))
        for row in record["rows"]:  # another person may have the same label
            row["who"] = row["label"] if self.place(row["label"]) == row["place"] else f"#{row['place']}"
        return record

    def _known(self, found: Found, model: str) -> Known:
        best = found.best
        key = (id(best), model)
        if key not in found.known:
            q = self.question
            people = len(q.frame) if q.frame is not None else 1 + max((place for place, _ in self._labels), default=-1)
            asked = None if self._chosen is None else self._chosen[model]
            outside = isinstance(q.options.population, str) and q.options.population == "outside"
            made = Known.of(best, model, people, asked, "has" if outside else "out")
            if best is None:
                return made
            found.known = {k: v for k, v in found.known.items() if k[0] == id(best)} | {key: made}
        return found.known[key]

    def _groups_at(self, found: Found, model: str) -> Callable[[int], list[str]]:
        """Return what tells the groups of the person at a place, in the words of the user."""
        q = self.question
        names = [column for column, _ in q.options.groups]
        if q.frame is not None:
            columns = [c for c in names if c in q.frame.columns]
            return lambda i: [q.wording.group(c, q.frame[c].iloc[i]) for c in columns]  # type: ignore[index]
        assert q.saved is not None
        groups, known = q.saved.rows[model].groups, self._known(found, model)
        return lambda i: [q.wording.group(str(c), groups[c].iloc[known.at[i]]) for c in groups.columns] if known.at[i] >= 0 else []

    def person(self, state: State, place: int) -> Person:
        """Return a person under the edited model; the last few are kept."""
        if not self.question.live:
            raise InputError("a saved run alone has no points", where="run", remedy="start with --data and --model")
        im = self.specs.model(state)
        key = (model_key(im), state.threshold, place)
        with self._lock:
            found = self._people.get(key)
        found = found or Person(self.question, im, state.threshold, place)
        with self._lock:
            return self._people.keep(key, found)

    def person_record(self, state: State, who: Any, model: str) -> dict[str, Any]:
        """Return what the page shows of a person, with what can be tried and how they stand today."""
        place = self.place(who)
        if not self.question.live:
            return saved_person(self.question, place, dict(self._labels)[place], model)
        found = self.person(state, place)
        record = found.record(model) | {"controls": [], "today": None, "goal": None, "declared": self._declared(state, place, model)}
        if found.reaches:
            plan = found.plan(model)
            record["controls"] = [control.record() for control in controls_of(found)]
            record["today"] = attempt(found, model, None)
            record["goal"] = place_of(found, plan.values[0]) if plan.optimal and len(plan.values) else None
        output = record["today"]["output"] if record["today"] else None
        return record | {"facts": [*record["facts"], *model_facts(record["models"], model, output)]}

    def _declared(self, state: State, place: int, model: str) -> str:
        """Return what was counted for a person under the declared rules; nothing where they were not edited, or it is not known."""
        found = self._start_found()
        at = self._known(found, model).at[place]
        if not self.specs.edited(state) or found.best is None or at < 0:
            return ""
        return f"As declared: {counted({str(k): v for k, v in found.best.of_model(model).iloc[at].items()})}."

    def points(self, state: State, record: dict[str, Any]) -> dict[str, Any]:
        """Return some points of a person: of one cell of their table, if one is named."""
        cell, offset = record.get("cell", ""), record.get("offset", 0)
        if not isinstance(cell, str):
            raise InputError("is a text", where="cell", got=cell)
        if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset < 2**53:
            raise InputError("is a whole number", where="offset", got=offset)
        found, model = self._reaching(state, record)
        best = found.best(model, cell)
        return found.points(model, cell, offset, limit=100 if offset else MOST_POINTS) | {"at": None if best is None else place_of(found, best)}

    def attempt(self, state: State, record: dict[str, Any]) -> dict[str, Any]:
        """Return what comes of a choice of a person."""
        found, model = self._reaching(state, record)
        return attempt(found, model, record.get("at"))

    def _reaching(self, state: State, record: dict[str, Any]) -> tuple[Person, str]:
        """Return the person and the model that a request names; a person without points is an error."""
        found = self.person(state, self.place(record.get("who")))
        if not found.reaches:
            raise InputError("this person has no points", where="who", got=record.get("who"))
        return found, self.named(record.get("model"))

    def _key(self, state: State) -> tuple[str, float]:
        return model_key(state.edits.of(self.specs.base(state.base)[0])), state.threshold

    def _at(self, state: State) -> Found:
        key = self._key(state)
        with self._lock:
            return self._found.get(key) or Found()

    def _start_found(self) -> Found:
        with self._lock:
            return self._found.setdefault((self.first, self.question.threshold), Found())

    def whole(self, state: State) -> Audit:
        """Everybody's audit, computed unless it is at hand."""
        found = self._at(state)
        if found.whole is not None:
            return found.whole
        *_, last = self._pieces(self.specs.model(state), state, threading.Event())
        result = self._judged(state, last.audit())
        self._keep(state, whole=result)
        return result

    def report(self, state: State) -> str:
        """Return everyone's audit as a document; edits are named in its title and in a note, for it will be read away from the page."""
        found, said, title = self.whole(state), "; ".join(self.specs.edited(state)), ""
        if said:
            note = Problem("", f"Edited on the page: {said}. These are not the verdicts of the audit that was planned.", severity="warning")
            found, title = replace(found, notes=(note, *found.notes)), f"Responsiveness: {self.question.title or 'an audit'} (edited on the page: {said})"
        return render(found, title=title, nouns=found.wording)

    # -- looking ------------------------------------------------------------------------------------------------------

    def enter(self, window: str) -> threading.Event:
        """A window's new wish: the one before is told to stop."""
        with self._lock:
            if (old := self._stops.get(window)) is not None:
                old.set()
            return self._stops.keep(window, threading.Event())

    def look(
        self, state: State, who: Any = None, *, model: str = "", pin: Any = None, whole: bool | None = None, stop: threading.Event, tell: Tell
    ) -> None:
        """Tell the answer piece by piece: the person first, then a subsample, then everyone (if that does not take too long), then each rule.

        Where nobody is named, the most harmed of those who are known first are opened.
        """
        began, model, opened = time.perf_counter(), self.named(model), [who]

        def tell_of(record: dict[str, Any]) -> None:
            tell(record)
            known = record["kind"] == "everyone" and (record["whole"] or record.get("stopped") or time.perf_counter() - began > WAIT)
            if known and opened[0] is None and (rows := self.people(state, Wish(model=model, limit=1))["rows"]):
                opened[0] = rows[0].get("who", rows[0]["label"])
                tell({**try_person(lambda: self.person_record(state, opened[0], model)), "who": opened[0]})

        _go_on(stop)
        tell({"kind": "model", "edited": self.specs.edited(state), "names": SHOWN | category_words(state.threshold, self.question.options.claim)})
        if who is not None:
            tell(try_person(lambda: self.person_record(state, who, model)))
        if pin is not None and pin != who:
            tell({**try_person(lambda: self._pinned(state, who, pin, model)), "kind": "pin"})
        if self.question.live:
            try:
                first = State(self.first, Edits(), self.question.threshold)
                if state != first and self._start_found().best is None:  # an address may hold edits: what they change is told beside what was declared
                    self._everyone(self.specs.model(first), first, whole, stop, lambda record: tell(record) if record["kind"] == "progress" else None)
                self._everyone(self.specs.model(state), state, whole, stop, tell_of)
                self._rules(state, opened[0], model, stop, tell)
            except BudgeError as error:
                tell({"kind": "error", **error_record(error)})
        else:
            assert self.question.saved is not None
            tell_of(self._told(self.question.saved))
        tell({"kind": "end", "seconds": time.perf_counter() - began})

    def _pinned(self, state: State, who: Any, pin: Any, model: str) -> dict[str, Any]:
        """Return the pinned person, and in what the two differ."""
        other, frame = self.place(pin), self.question.frame
        record = self.person_record(state, pin, model)
        record = {k: record[k] for k in ("label", "facts", "say", "models", "status")} | {"differs": []}
        if frame is not None and who is not None:
            one, two = frame.iloc[self.place(who)], frame.iloc[other]
            nouns, moving = self.question.nouns, self.specs.model(state).moving
            record["differs"] = [
                {"feature": nouns.feature(str(c)), "mine": nouns.value(str(c), one[c]), "other": nouns.value(str(c), two[c]), "moves": c in moving}
                for c in frame.columns if not same_cell(one[c], two[c])
            ]  # fmt: skip
        return record

    def _rules(self, state: State, who: Any, model: str, stop: threading.Event, tell: Tell) -> None:
        """Tell of each rule what it alone holds back: for the person, and for people without a way under the declared rules."""
        declared = State(state.base, Edits(), state.threshold)
        found = self._at(declared).whole
        base, place = self.specs.base(state.base)[0], None if who is None else self.place(who)
        key = (state.base, state.threshold)
        if found is not None and key not in self._freed:
            self._freed = {key: Freed(self.question, state.threshold, found)}
        for rule in rules_of(base):
            if rule.coding:
                continue
            _go_on(stop)
            record: dict[str, Any] = {"kind": "rule", "id": rule.id, "person": None, "people": None}
            try:
                freed = Edits((rule.id,)).of(base)
                if place is not None:
                    record["person"] = self._line(state, rule.id, freed, place)[model]
                if key in self._freed:
                    record["people"] = self._freed[key].record(rule.id, freed, model, lambda: _go_on(stop))
                record["lines"] = lines_of(record, who)
            except BudgeError as error:
                record["lines"] = [{"text": ["not computed", f"({error})"], "hot": False}]
            tell(record)

    def _line(self, state: State, rule: str, freed: InteractionModel, place: int) -> dict[str, Any]:
        key = (state.base, state.threshold, rule, place)
        return self._lines.get(key) or self._lines.keep(key, row_without(self.question, freed, state.threshold, place))

    def _everyone(self, im: InteractionModel, state: State, whole: bool | None, stop: threading.Event, tell: Tell) -> None:
        """Tell of those asked so far, at moments; then of all. Too slow a model is asked about all only if that is wished."""
        found = self._at(state)
        if found.whole is not None:
            tell(self._told(found.whole))
            return
        told = 0.0
        for piece in self._pieces(im, state, stop):
            if piece.whole:
                result = self._judged(state, piece.audit())
                self._keep(state, whole=result)
                tell(self._told(result))
                return
            slow = piece.seconds_for_all > PATIENCE and piece.seconds > PATIENCE / 20 and whole is not True
            due = piece.seconds >= FIRST_TOLD if not told else piece.seconds - told >= max(NEXT_TOLD, told)
            if piece.done >= FEWEST and (due or slow):
                told = piece.seconds
                some = self._judged(state, piece.audit())
                self._keep(state, some=some)
                tell({**self._told(some, of=piece.of), "seconds_for_all": piece.seconds_for_all, "stopped": slow})
                if slow:
                    return
            elif told:
                tell({"kind": "progress", "done": piece.done, "of": piece.of})

    def _pieces(self, im: InteractionModel, state: State, stop: threading.Event) -> Iterator[Piece]:
        assert self.order is not None
        return running(self.question, im, state.threshold, self._before, self.order, self.pace, lambda: _go_on(stop))

    def _told(self, found: Audit, of: int = 0) -> dict[str, Any]:
        start = self._start_found().whole
        return everyone_record(found, None if start is found else start, self.question.wording, of=of)

    def _judged(self, state: State, found: Audit) -> Audit:
        """Return the result without its declaration of harm where the model was edited: the declaration was about the question as served."""
        if not found.design.harm or not self.specs.edited(state):
            return found
        design = replace(found.design, harm=None)
        return replace(found, design=design, info={**found.info, "harm": None, "design": design.to_dict()})

    def _keep(self, state: State, *, some: Audit | None = None, whole: Audit | None = None) -> None:
        key = self._key(state)
        with self._lock:
            old = self._found.keep(key, self._found.get(key) or Found())
            old.some, old.whole = some or old.some, whole or old.whole


def _go_on(stop: threading.Event) -> None:
    if stop.is_set():
        raise SupersededError
