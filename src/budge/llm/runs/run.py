"""`llm.run`: ask models about prompts as they stand and rewritten, judge the answers, keep everything."""

from __future__ import annotations

import asyncio
import contextvars
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from budge.llm.answers import Answers
from budge.llm.interactions.base import Interaction
from budge.llm.judges.base import Judge
from budge.llm.prompts import Prompt, Prompts
from budge.llm.runs.design import Design, amount, count, design_of, extendable, rule_key
from budge.llm.runs.draws import Draw, Stop, ended_by_cap, needed, stop_of
from budge.llm.runs.folder import LOGS, Store, begin, holds_run, open_journal, save
from budge.llm.runs.meter import ENDED, STARTED, Meter, check_prices
from budge.llm.runs.patience import Patience
from budge.llm.runs.steps import Steps
from budge.stats import StoppingRule

__all__ = ["Run", "in_loop", "run"]

Progress = Callable[[int, int], None]
_REMEDIES = {
    "max_calls": "raise --max-calls (max_calls=) and call again",
    "max_cost": "raise --max-cost (max_cost=) and call again",
}


@dataclass(frozen=True)
class Run:
    """What a run has answered so far.

    Attributes
    ----------
    answers
        One row a draw; see `Answers`.
    incomplete
        Why draws are missing; empty where none is.
    remedy
        How it goes on then: by the same call, or by one with a higher cap.
    calls, cost
        Calls and their cost, those of earlier calls on the same folder included.
    asked
        Calls of this process alone.
    stops
        Where a stopping rule ended, model by model and interaction by interaction.
    """

    answers: Answers
    planned: int
    incomplete: str = ""
    calls: int = 0
    asked: int = 0
    cost: float = 0.0
    folder: Path | None = None
    stops: tuple[Stop, ...] = ()
    not_answered: tuple[str, ...] = field(default=(), repr=False)
    remedy: str = "the same call goes on"

    @property
    def saved(self) -> int:
        """Draws that a stopping rule saved against the fixed design."""
        return sum(stop.saved for stop in self.stops)

    def __str__(self) -> str:
        table = self.answers.table
        lost = int(table["hit"].isna().sum())
        parts = [f"{len(table) - lost} of {_several(self.planned, 'draw')} resolved by {_several(self.calls, 'call')}"]
        if self.calls and not self.asked:
            parts[0] += " (nothing was asked now)"
        if self.cost:
            parts[0] += f", cost {self.cost:.4g}"
        if lost:
            parts.append(f"{lost} unresolved: {', '.join(self.reasons())}")
        if self.stops:
            spare = sum(stop.asked - stop.draws for stop in self.stops)
            more = f", {spare} under way at a stop {'was' if spare == 1 else 'were'} not used" if spare else ""
            parts.append(f"stopped early: {_several(self.saved, 'draw')} saved{more}")
            capped = [stop for stop in self.stops if stop.capped]
            if capped:
                parts.append(f"{len(capped)} ended by the largest number of draws: the same call with a larger one (-n, max_n=) goes on")
        parts += self.answers.remarks()
        if self.incomplete:
            parts.append(f"incomplete: {self.incomplete}; {self.remedy}")
        return "; ".join(parts) + "."

    def reasons(self, most: int = 3) -> list[str]:
        """Why draws are unresolved, each reason with how often and with a piece of the text that was read; the most frequent first."""
        table = self.answers.table
        lost = table[table["hit"].isna()]
        said = lost["judge_text"] if "judge_text" in lost else [""] * len(lost)  # the judge's own words, not those of the model that it judged
        times, pieces = Counter(lost["why"]), {why: text or answer for why, text, answer in zip(lost["why"], said, lost["answer"])}
        told = [f"{count} × {why}{_piece(pieces[why])}" for why, count in times.most_common(most)]
        rest = sum(times.values()) - sum(count for _, count in times.most_common(most))
        return [*told, f"{rest} × something else"] if rest else told

    def to_dict(self) -> dict[str, Any]:
        """The record of the run."""
        table = self.answers.table
        return {
            "planned": self.planned, "answered": len(table), "unresolved": int(table["hit"].isna().sum()), "calls": self.calls,
            "asked_now": self.asked, "cost": self.cost, "incomplete": self.incomplete, "not_answered": list(self.not_answered),
            "stops": [stop.to_dict() for stop in self.stops], "folder": None if self.folder is None else str(self.folder),
            "info": dict(self.answers.info),
        }  # fmt: skip


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _piece(answer: Any) -> str:
    text = " ".join(str(answer or "").split())
    return f": {text if len(text) <= 40 else text[:39] + '…'!r}" if text else ""


def run(
    models: Any, prompts: Prompts | Sequence[Prompt | str],
    interactions: Mapping[str, Interaction | str] | Sequence[Interaction | str] | None = None, *, judge: Judge | str,
    n: int | None = None, per_prompt: int | None = None, census: bool = False, seed: int = 0, folder: str | Path | None = None, base: bool = True,
    temperature: float | None = None, max_tokens: int = 256, rewriter_tokens: int = 1024, judge_tokens: int = 1024,
    max_calls: int | None = None, max_cost: float | None = None, prices: Any = None,
    concurrency: int = 8, sequential: StoppingRule | None = None, family: int | None = None, rewriter: Any = None, judge_model: Any = None,
    base_url: str | None = None, api_key: str | None = None, patience: Patience | None = None, send_seed: bool = True,
    overwrite: bool = False, progress: Progress | None = None,
) -> Run:  # fmt: skip
    """Ask models about prompts, as they stand and under interactions, and judge the answers.

    Parameters
    ----------
    models
        A name as Inspect spells it (``openai/…``, ``openai-api/<service>/<model>``, ``hf/…``, ``vllm/…``), a `ChatModel`, an
        Inspect `Model`, a list of those, or a dict of labels to those.
    prompts
        The prompts of the benchmark.
    interactions
        Ways to rewrite them, by name. ``"base"`` (as they stand) is always asked too, unless `base` is False.
    judge
        What turns an answer into a hit or not.
    n
        Joint draws for each model and interaction: a prompt uniformly with replacement, a rewrite, a completion.
    per_prompt
        Instead: draws for each prompt.
    census
        Instead: every prompt once, at temperature 0, under interactions that have one rewrite per prompt. Nothing is drawn, so that rates over
        these prompts are known, if the model repeats its answers.
    temperature
        Of decoding; 0.7 unless given, and 0 for a census.
    seed
        Of everything random here; also sent with each call, another one for each draw, unless `send_seed` is False.
    folder
        Where the run is kept. The same call on the same folder goes on where the last one ended, however that ended.
    max_calls, max_cost, prices
        Caps over the whole run; `prices` are (input, output) for a million tokens, by model ("rewriter" and "judge"
        for the models below). Retries count.
    sequential
        A rule of `budge.stats` (`anytime_rule`, `sprt_rule`, `curtailed_rule`): joint draws are added until it decides. Its alpha is that of
        the `family`: each test stops at alpha divided by their number, so that a claim that stopped the run is shown by `llm.test`. Draws are
        looked at in their planned order, whatever came first. The cap of an anytime rule or an SPRT may be raised on the same folder.
    family
        How many tests are adjusted together; the number of interactions unless given.
    max_tokens, rewriter_tokens, judge_tokens
        The longest reply of the models under test, of the one that rewrites and of the one that judges. A rewrite that was cut off is not sent:
        the draw is unresolved. Answers that were cut off are marked (`cut`) and counted.
    rewriter, judge_model
        Models for interactions and judges that ask one and do not name it.
    base_url, api_key
        For models given by name.
    patience
        Waits, tries, time-outs; see `Patience`.
    progress
        Called with draws done and planned.

    Returns
    -------
    Run
        Complete, or with a reason in `incomplete`.

    Raises
    ------
    ModelError
        An endpoint refused (400, 401, 403, 404): at once. What was answered is kept.
    InputError
        The folder holds another run; what differs is named.
    StorageError
        The folder cannot be written, or another process works on it.
    """
    design = design_of(
        models, prompts, interactions, judge, n=n, per_prompt=per_prompt, census=census, seed=seed, base=base,
        temperature=temperature, max_tokens=(max_tokens, rewriter_tokens, judge_tokens), concurrency=concurrency, sequential=sequential,
        family=family, rewriter=rewriter, judge_model=judge_model,
        base_url=base_url, api_key=api_key, patience=patience or Patience(), send_seed=send_seed,
    )  # fmt: skip
    meter = Meter(
        max_calls=count(max_calls, "max_calls", least=0), max_cost=amount(max_cost, "max_cost"),
        prices=check_prices(prices, design.priced(), needed=max_cost is not None),
    )  # fmt: skip
    where = None if folder is None else Path(folder)

    def work() -> Run:
        return _run(design, meter, where, overwrite=overwrite, progress=progress)

    if not in_loop():
        return work()
    with ThreadPoolExecutor(1) as pool:  # in a notebook: a loop runs here already, and Inspect wants its own
        return pool.submit(contextvars.copy_context().run, work).result()


def in_loop() -> bool:
    """Return whether a loop runs here. The error that tells is forgotten: Inspect would report it as the first cause of any other."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(design: Design, meter: Meter, folder: Path | None, *, overwrite: bool, progress: Progress | None) -> Run:
    identity = design.identity()
    # What cannot be asked is said before a folder is made; a finished run is read without its models.
    engine = _engine(design, meter) if folder is None or not holds_run(folder) or overwrite else None
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="budge-llm-") as logs:
            return _work(design, meter, None, Store(), Path(logs), identity, progress, engine)
    with open_journal(folder, identity, overwrite=overwrite) as journal:
        store = Store(journal)
        store.check_verdicts()
        meter.count_again(store.calls[STARTED], store.calls[ENDED])
        meter.note = store.note
        result = _work(design, meter, folder, store, folder / LOGS, identity, progress, engine)
        if not result.incomplete and not journal.complete and not extendable(design.rule):
            journal.finish()
        return result


def _work(
    design: Design, meter: Meter, folder: Path | None, store: Store, logs: Path, identity: dict[str, Any], progress: Progress | None,
    engine: Any = None,
) -> Run:  # fmt: skip
    cells = design.cells()
    planned = sum(map(len, cells.values()))
    steps = Steps(design.interactions, design.judge, design.seed, store, design.patience.in_a_row)
    done = sum(steps.done(draw) for draws in cells.values() for draw in draws)

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, planned)

    steps.tell = tell
    if progress is not None:
        progress(done, planned)
    if folder is not None and _batch(design, cells, steps):
        begin(
            folder,
            store,
            {**_info(design, identity), "complete": False},
            {prompt.id: prompt.category for prompt in design.prompts},
        )
    try:
        while not steps.stopped and not steps.gave_up and (batch := _batch(design, cells, steps)):
            engine = engine or _engine(design, meter)
            before = len(store)
            engine.run(batch, steps, logs)
            if len(store) == before:  # nothing came of it, and nothing will
                break
    finally:  # also after a refusal: what was answered can be read
        result = _result(design, cells, steps, meter, folder, identity)
        if folder is not None and not (store.replaces and result.incomplete):
            save(
                result.answers, folder, record={"run": {k: v for k, v in result.to_dict().items() if k not in ("info", "folder")}}
            )
    return result


def _engine(design: Design, meter: Meter) -> Any:
    """The models of the run, made; Inspect is imported here."""
    from budge.llm.runs.engine import Engine, Options

    options = Options(
        temperature=design.temperature, max_tokens=design.max_tokens, concurrency=design.concurrency, patience=design.patience,
        base_url=design.base_url, api_key=design.api_key, send_seed=design.send_seed,
    )  # fmt: skip
    engine = Engine(design.models, {"rewriter": design.rewriter, "judge": design.judge_model}, meter, options)
    engine.prepare(design.named())
    return engine


def _batch(design: Design, cells: dict[tuple[str, str], list[Draw]], steps: Steps) -> list[Draw]:
    """What to ask next: all that is left, or what could let a rule decide."""
    if design.rule is None:
        return [draw for draws in cells.values() for draw in draws if not steps.done(draw)]
    open_cells = {}
    for cell, draws in cells.items():
        hits = _hits(steps, draws)
        if stop_of(design.rule, hits)[0] == "continue":
            open_cells[cell] = hits
    batch = []
    for cell, hits in open_cells.items():
        size = max(needed(design.rule, hits), design.concurrency // len(open_cells))
        batch += [draw for draw in cells[cell][len(hits) : len(hits) + size] if not steps.done(draw)]
    return batch


def _hits(steps: Steps, draws: Sequence[Draw]) -> list[bool | None]:
    """The judgements up to the first draw that has none."""
    hits: list[bool | None] = []
    for draw in draws:
        row = steps.row(draw)
        if row is None:
            break
        hits.append(row["hit"])
    return hits


def _result(
    design: Design, cells: dict[tuple[str, str], list[Draw]], steps: Steps, meter: Meter, folder: Path | None, identity: dict[str, Any]
) -> Run:  # fmt: skip
    rows, stops, missing = [], [], 0
    for (model, name), draws in cells.items():
        wanted = draws
        if design.rule is not None:
            hits = _hits(steps, draws)
            verdict, at = stop_of(design.rule, hits)
            asked = sum(steps.done(draw) for draw in draws)
            if verdict != "continue":
                wanted = draws[:at]
                seen = hits[:at]
                found, unresolved = sum(hit is True for hit in seen), sum(hit is None for hit in seen)
                capped = verdict == "inconclusive" and extendable(design.rule) and ended_by_cap(design.rule, seen)
                stops.append(Stop(model, name, verdict, at, found, unresolved, asked, design.rule.fixed_n, capped))
        mine = [steps.row(draw) for draw in wanted]
        missing += sum(row is None for row in mine)
        rows += [row for row in mine if row is not None]
    info: dict[str, Any] = {**_info(design, identity), "complete": not missing}
    if design.rule is not None:
        info["sequential"] = {**rule_key(design.rule), "family": design.family, "stops": [stop.to_dict() for stop in stops]}
    reason = ""
    if missing:
        reason = steps.stopped or (
            f"no answer to {len(steps.gave_up)} draws, the first: {steps.gave_up[0]}" if steps.gave_up else ""
        )
        reason = reason or f"{missing} draws are not answered"
    return Run(
        Answers.of(rows, info), sum(map(len, cells.values())), reason, meter.calls, meter.asked, meter.cost, folder, tuple(stops),
        tuple(steps.gave_up), _REMEDIES.get(steps.cap, "the same call goes on"),
    )  # fmt: skip


def _info(design: Design, identity: dict[str, Any]) -> dict[str, Any]:
    """What tests have to know of the design."""
    scheme = "census" if design.census else "joint" if design.n is not None else "per_prompt"
    return {
        "scheme": scheme, "n": design.n, "per_prompt": design.per_prompt, "seed": design.seed,
        "judge": identity["judge"], "prompts": identity["prompts"], "identity": identity,
    }  # fmt: skip
