"""What happens to one draw: rewrite, ask, judge; each step kept as soon as it is done, so that none is done twice.

Nothing here knows the engine: it gives a `Call`, which asks a model once (with the engine's own retries) or says why not.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from budge.errors import BudgeError, DrawError, InputError, printable
from budge.llm.answers import BASE
from budge.llm.interactions.base import Ask, Interaction
from budge.llm.judges.base import Judge, Judgement
from budge.llm.prompts import Prompt
from budge.llm.runs.draws import Draw, decode_seed, rewrite_stream
from budge.llm.runs.folder import CUT, Store, answer_row
from budge.llm.runs.meter import CapReachedError, Usage

__all__ = ["Call", "GaveUpError", "Reply", "Steps"]


@dataclass(frozen=True)
class Reply:
    """What came back from a call. `why` is not empty where there is no answer in it; then `raw` is what there was."""

    text: str
    usage: Usage
    calls: int = 1
    why: str = ""
    raw: str = ""
    stop: str = ""


class Call(Protocol):
    """Asks a model (by label or name; "" for `role`'s own) one question."""

    def __call__(self, model: str, text: str, *, role: str, seed: int, system: str = "") -> Awaitable[Reply]: ...


class GaveUpError(Exception):
    """Every try failed in a way that may pass; the draw is left for the next run."""

    def __init__(self, reason: str, calls: int):
        super().__init__(reason)
        self.reason, self.calls = reason, calls


class _NoAnswerError(Exception):
    """A model that rewrites or judges gave no answer."""

    def __init__(self, reply: Reply):
        super().__init__(reply.why)
        self.reply = reply


@dataclass
class Steps:
    """The steps of all draws of a run, and whether it goes on."""

    interactions: Mapping[str, Interaction]
    judge: Judge
    seed: int
    store: Store
    in_a_row: int
    tell: Callable[[], None] = lambda: None
    stopped: str = ""
    cap: str = ""  # the option that would let it go on
    fatal: BudgeError | None = None
    gave_up: list[str] = field(default_factory=list)
    _failed_in_a_row: int = 0
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    def fresh(self) -> None:
        """Before a batch: a lock belongs to the loop in which it was waited for."""
        self._locks.clear()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """An error of ours ends the run; it is kept, since the engine passes on its words only."""
        try:
            yield
        except BudgeError as error:
            self.fatal = self.fatal or error
            raise

    async def answer(self, draw: Draw, call: Call) -> dict[str, Any] | None:
        """Rewrite and ask, unless that is done; the record, or None if the run stops first."""
        if (kept := self.store.get(f"answer {draw.key}")) is not None:
            return kept
        if self.stopped or self.fatal:
            return None
        try:
            prompt = await self._rewrite(draw, call)
            if isinstance(prompt, Reply):
                return self._keep(draw, draw.prompt, "", prompt, f"no rewrite: {prompt.why}")
            more = {"system": prompt.system} if prompt.system else {}
            reply = await call(draw.model, prompt.asked, role="model", seed=decode_seed(self.seed, draw), **more)
        except (CapReachedError, GaveUpError) as error:
            self._not_now(draw, error)
            return None
        self._failed_in_a_row = 0
        return self._keep(draw, prompt, prompt.asked, reply, reply.why)

    async def judgement(self, draw: Draw, call: Call) -> dict[str, Any] | None:
        """Judge the kept answer, unless that is done; the record, or None if the run stops first."""
        kept, answer = self.store.get(f"judge {draw.key}"), self.store.get(f"answer {draw.key}")
        if kept is not None or answer is None:
            return kept
        if answer["why"]:
            verdict = Judgement(None, answer["why"], answer["text"])
        elif self.fatal:
            return None
        else:
            ask = self._ask(f"judge {draw.key}", decode_seed(self.seed, draw, "llm judge"), "judge", call)
            try:
                prompt = replace(draw.prompt, expected=answer["expected"])
                verdict = await self.judge.apply(prompt, answer["sent"], answer["text"], ask)
                if not isinstance(verdict, Judgement) or verdict.hit not in (True, False, None):
                    raise InputError("a judge returns a Judgement", where=self.judge.name, got=verdict)
            except _NoAnswerError as error:
                verdict = Judgement(None, f"the judge: {error.reply.why}", error.reply.raw)
            except (CapReachedError, GaveUpError) as error:
                self._not_now(draw, error)
                return None
            except BudgeError:
                raise
            except Exception as error:  # somebody's judge: one answer that it cannot read is unresolved, not the end
                verdict = Judgement(None, f"the judge failed: {type(error).__name__}: {printable(str(error))}")
        hit = None if verdict.hit is None else bool(verdict.hit)
        asked = self.store.get(f"ask 0001 judge {draw.key}")
        if hit is None and asked is not None and asked["stop"] in CUT:
            verdict = replace(verdict, why=f"{verdict.why} (its reply was cut off at {asked['usage'][1]} tokens)")
        record = {"hit": hit, "why": verdict.why, "raw": verdict.raw}
        self.store.put(f"judge {draw.key}", record)
        self.tell()
        return record

    def row(self, draw: Draw) -> dict[str, Any] | None:
        """The row of a finished draw in the table of answers."""
        answer, verdict = self.store.get(f"answer {draw.key}"), self.store.get(f"judge {draw.key}")
        if answer is None or verdict is None:
            return None
        return answer_row(draw.model, draw.interaction, draw.prompt.id, draw.prompt.category, draw.index, answer, verdict)

    def done(self, draw: Draw) -> bool:
        """Whether the draw is answered and judged."""
        return self.store.get(f"judge {draw.key}") is not None

    # -- inside ---------------------------------------------------------------------------------------------------------

    async def _rewrite(self, draw: Draw, call: Call) -> Prompt | Reply:
        """Return the prompt as it is to be sent; a reply where the model that rewrites gave none."""
        if draw.interaction == BASE:
            return draw.prompt
        key = f"rewrite {draw.rewrite_key}"
        async with self._locks.setdefault(key, asyncio.Lock()):  # models share the rewrite, and ask for it at the same time
            if (kept := self.store.get(key)) is not None:
                return replace(draw.prompt, **kept)
            interaction = self.interactions[draw.interaction]
            ask = self._ask(key, decode_seed(self.seed, draw, "llm rewriter"), "rewriter", call)
            asked = len(self.store)
            try:
                prompt = await interaction.change(draw.prompt, rewrite_stream(self.seed, draw), ask)
            except _NoAnswerError as error:
                return error.reply
            except DrawError as error:  # no rewrite will do: this draw is not made, and no other stands for it
                return Reply("", Usage(), 0, str(error))
            except (BudgeError, CapReachedError, GaveUpError):
                raise
            except Exception as error:
                what = f"the interaction failed on prompt {draw.prompt.id!r}: {type(error).__name__}: {error}"
                raise InputError(what, where=f"interactions.{draw.interaction}") from error
            if len(self.store) > asked:  # a model was asked: its answer is kept already, the whole text is kept too
                changed = {name: value for name, value in asdict(prompt).items() if value != getattr(draw.prompt, name)}
                self.store.put(key, {"text": prompt.text, **changed})
            return prompt

    def _ask(self, key: str, seed: int, role: str, call: Call) -> Ask:
        """How an interaction or a judge asks a model: each question once, the answers kept in order."""
        number = 0

        async def ask(model: str, text: str) -> str:
            nonlocal number
            number += 1
            place = f"ask {number:04d} {key}"
            kept = self.store.get(place)
            if kept is None or kept["question"] != text:
                if self.stopped:
                    raise CapReachedError(self.stopped)
                reply = await call(model, text, role=role, seed=(seed + number) % (2**31 - 1))
                if kept is None:
                    kept = {"question": text, "model": model or role, **_told(reply)}
                    self.store.put(place, kept)
            if role == "rewriter" and kept["stop"] in CUT:  # part of a rewrite is another question
                kept = {**kept, "why": f"its reply was cut off at {kept['usage'][1]} tokens", "text": ""}
            if kept["why"]:
                raise _NoAnswerError(Reply(kept["text"], Usage(), why=kept["why"], raw=kept["text"]))
            return str(kept["text"])

        return ask

    def _keep(self, draw: Draw, prompt: Prompt, sent: str, reply: Reply, why: str) -> dict[str, Any]:
        same = draw.interaction != BASE and sent != "" and prompt == draw.prompt
        record = {"sent": sent, "model": draw.model, **_told(reply), "why": why, "unchanged": same}
        record |= {"original": draw.prompt.text, "expected": prompt.expected, **({"system": prompt.system} if prompt.system else {})}
        self.store.put(f"answer {draw.key}", record)
        return record

    def _not_now(self, draw: Draw, error: CapReachedError | GaveUpError) -> None:
        if error.calls:
            self.store.put(f"failed {uuid.uuid4().hex}", {"calls": error.calls, "reason": str(error)})
        if isinstance(error, CapReachedError):
            self.stopped, self.cap = self.stopped or str(error), self.cap or error.option
            return
        self.gave_up.append(f"prompt {draw.prompt.id!r}, {draw.interaction}, draw {draw.index}: {error.reason}")
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self.in_a_row:
            self.stopped = self.stopped or f"{self._failed_in_a_row} draws in a row got no answer: {error.reason}"


def _told(reply: Reply) -> dict[str, Any]:
    """What is kept of a reply. The text is the answer, or the raw body where there is none."""
    return {
        "text": reply.raw if reply.why else reply.text, "why": reply.why, "stop": reply.stop, "calls": reply.calls,
        "usage": [reply.usage.input, reply.usage.output, reply.usage.known],
    }  # fmt: skip
