"""Specs of one run: the one that was served, those that were applied since, and the model that edits make of one."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import Any, Literal, cast

from budge.errors import BudgeError, InputError
from budge.interaction import InteractionModel
from budge.spec import check, parse, to_text
from budge.spec.limits import SPEC_BYTES
from budge.web.edits import Edits, controls, model_key
from budge.web.question import Question
from budge.web.records import Last, error_record, problem_record

__all__ = ["Specs", "State"]

KEPT_BASES, KEPT_WARM = 200, 3


@dataclass(frozen=True)
class State:
    """What the page looks at: a declared model, edits of it, a threshold."""

    base: str
    edits: Edits
    threshold: float


class Specs:
    """Declared models by key; safe to be asked from several threads."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.first = model_key(question.im)
        self._bases: Last[str, tuple[InteractionModel, str]] = Last(KEPT_BASES, self.first)
        self._bases.keep(self.first, (question.im, question.text))
        self._warm: Last[str, InteractionModel] = Last(KEPT_WARM)
        self._lock = threading.Lock()

    def state(self, record: Any) -> State:
        """Return a state from what the page sends."""
        if not isinstance(record, dict):
            raise InputError("is missing", where="state", got=record)
        base = record.get("base") or self.first
        tau = record.get("threshold", self.question.threshold)
        if not isinstance(tau, int | float) or isinstance(tau, bool) or not (0 < tau < 1 or tau == self.question.threshold):
            raise InputError("a threshold lies between 0 and 1", where="threshold", got=tau)
        if not isinstance(base, str):
            raise InputError("is a text", where="state.base", got=base)
        return State(base, Edits.read(record), float(tau))

    def base(self, key: str) -> tuple[InteractionModel, str]:
        """Return a declared model and its text."""
        with self._lock:
            found = self._bases.get(key)
        if found is None:
            raise InputError("this spec is not at hand any more", where="state.base", got=key, remedy="apply it again")
        return found

    def model(self, state: State) -> InteractionModel:
        """Return the edited model; the last few are kept with what was prepared for them."""
        made = state.edits.of(self.base(state.base)[0])
        key = model_key(made)
        with self._lock:
            # A copy: what is prepared for it goes when it goes, and the declared models stay light.
            return self._warm.keep(key, self._warm.get(key) or made.with_measure(made.measure))

    def declared(self, state: State) -> dict[str, Any]:
        """Return what the page shows of the declared model of a state; edits that do not fit it are an error."""
        im = self.base(state.base)[0]
        state.edits.of(im)
        return {"base": state.base, "model": controls(im, self.question.wording)}

    def text(self, state: State) -> str:
        """Return the spec of a state as text: its author's own where nothing is edited."""
        im, text = self.base(state.base)
        edited = state.edits.of(im)
        return text if text and edited is im else to_text(edited)

    def edited(self, state: State) -> list[str]:
        """Return what differs from what was served, in words; empty where nothing does."""
        im, _ = self.base(state.base)
        same = model_key(state.edits.of(im)) == self.first
        said = [] if same else [*(["another text of the spec"] if state.base != self.first else []), *state.edits.describe(im)]
        if state.threshold != self.question.threshold:
            said.append(f"τ {self.question.threshold:g} → {state.threshold:g}")
        return said

    def export(self, state: State) -> str:
        """Return the spec of a state as a file: one that was edited is called so, since it is not the one that was planned."""
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

    def check(self, text: str, kind: str, *, deep: bool) -> dict[str, Any]:
        """Return what is wrong with a text; deep: also against the people."""
        try:
            im = self._parsed(text, kind)
        except BudgeError as error:
            return {"ok": False, **error_record(error), "report": None}
        record: dict[str, Any] = {"ok": True, "problems": [problem_record(w) for w in im.warnings], "report": None}
        if deep and self.question.frame is not None:
            report = check(im, self.question.frame)
            record["report"] = {"ok": report.ok, "sentences": str(report).split("\n")}
        return record

    def apply(self, text: str, kind: str) -> dict[str, Any]:
        """Make a text a declared model that states can build on."""
        im = self._parsed(text, kind)
        key = model_key(im)
        with self._lock:
            self._bases.keep(key, (im, text if kind == "yaml" else ""))
        return {"base": key, "model": controls(im, self.question.wording)}

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
