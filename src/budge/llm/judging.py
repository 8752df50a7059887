"""`llm.judge`: judge the answers of a run, or of a log, by another judge; no model under test is asked again."""

from __future__ import annotations

import asyncio
import contextvars
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

from budge import __version__
from budge.errors import DataError, DesignError, ModelError
from budge.llm.answers import Answers
from budge.llm.judges.base import Judge
from budge.llm.judges.registry import as_judge
from budge.llm.prompts import Prompt, Prompts
from budge.llm.runs.chat_models import named, settings
from budge.llm.runs.design import amount, asking, count
from budge.llm.runs.draws import Draw
from budge.llm.runs.folder import LOGS, Store, load, open_journal, save
from budge.llm.runs.meter import ENDED, STARTED, Meter, check_prices
from budge.llm.runs.patience import Patience
from budge.llm.runs.run import Progress, Run, in_loop
from budge.llm.runs.steps import Steps

__all__ = ["judge"]

_NOBODY = "none/none"  # Inspect's model that answers nothing: in the place of the models under test, which are not asked
_NOT_YET = "not judged yet"


def judge(
    run: Run | Answers | str | Path, judge: Judge | str, *, prompts: Prompts | Sequence[Prompt] | None = None, folder: str | Path | None = None,
    judge_model: Any = None, base_url: str | None = None, api_key: str | None = None, max_tokens: int = 1024, max_calls: int | None = None,
    max_cost: float | None = None, prices: Any = None, concurrency: int = 8, patience: Patience | None = None, overwrite: bool = False,
    progress: Progress | None = None,
) -> Run:  # fmt: skip
    """Return the same draws and answers with the verdicts of another judge.

    Parameters
    ----------
    run
        A run, its answers, its folder, or a file of answers, such as `read_log` and ``budge llm import`` make.
    judge
        The new judge. Draws without an answer stay unresolved.
    prompts
        The prompts with their expected answers, where the answers do not hold them.
    folder
        Where the new verdicts are kept; the same call on the same folder goes on where the last one ended.
    judge_model, base_url, api_key, max_tokens, max_calls, max_cost, prices, concurrency, patience
        As in `llm.run`, for a judge that asks a model.

    Raises
    ------
    DesignError
        The run was stopped by a rule that looked at the verdicts of its own judge: tests of other verdicts would not hold.

    Examples
    --------
    >>> rows = [{"model": "m", "interaction": "base", "prompt": "q", "hit": False, "sent": "Say hello.", "answer": "Hello, I cannot."}]
    >>> judge(Answers.of(rows), "contains(hello)").answers.table["hit"].tolist()
    [True]
    """
    made = as_judge(judge)
    answers = run.answers if isinstance(run, Run) else run if isinstance(run, Answers) else load(run)
    if answers.info.get("sequential"):
        what = "the run was stopped by a rule that looked at the verdicts of its own judge, so that tests of other verdicts would not hold"
        raise DesignError(what, where="run", remedy="run a fixed number of draws (n=, -n), then judge them as often as you like")
    if not len(answers):
        raise DataError("there are no answers to judge", where="run", remedy="run the prompts first")
    if judge_model is None and "" in asking(made):
        raise ModelError(f"{made.name} asks a model, and none is given", where="judge_model", remedy="give --judge-model (judge_model= in Python)")
    draws = _draws(answers, prompts)
    made.check(Prompts(tuple({draw.prompt.id: draw.prompt for draw, _ in draws}.values())))
    meter = Meter(
        max_calls=count(max_calls, "max_calls", least=0), max_cost=amount(max_cost, "max_cost"),
        prices=check_prices(prices, [*(["judge"] if judge_model is not None else []), *filter(None, asking(made))], needed=max_cost is not None),
    )  # fmt: skip
    from budge.llm.runs.calls import Options

    limit = count(max_tokens, "max_tokens") or 1
    options = Options(
        temperature=0.0, max_tokens={"judge": limit}, concurrency=count(concurrency, "concurrency") or 1, patience=patience or Patience(), base_url=base_url,
        api_key=api_key,
    )  # fmt: skip
    identity = {
        "kind": "llm judge", "version": __version__, "answers": _digest(answers), "judge": f"{made.describe()} [{made.key[:12]}]",
        "judge_model": named(judge_model), "judge_tokens": limit,
        **{
            f"{label}: {key}": value
            for label, model in {**{name: name for name in asking(made) if name}, "judge_model": judge_model}.items()
            for key, value in settings(model, own="/" not in label, base_url=base_url).items()
        },
    }  # fmt: skip

    def work() -> Run:
        if folder is None:
            with tempfile.TemporaryDirectory(prefix="budge-llm-") as logs:
                return _judged(answers, draws, made, Store(), meter, options, judge_model, Path(logs), identity, None, progress)
        place = Path(folder)
        with open_journal(place, identity, overwrite=overwrite) as journal:
            store = Store(journal)
            meter.count_again(store.calls[STARTED], store.calls[ENDED])
            meter.note = store.note
            found = _judged(answers, draws, made, store, meter, options, judge_model, place / LOGS, identity, place, progress)
            if not (store.replaces and found.incomplete):
                save(found.answers, place, record={"run": {k: v for k, v in found.to_dict().items() if k not in ("info", "folder")}})
            if not found.incomplete and not journal.complete:
                journal.finish()
            return found

    if not in_loop():
        return work()
    with ThreadPoolExecutor(1) as pool:  # in a notebook a loop is running already
        return pool.submit(contextvars.copy_context().run, work).result()


def _judged(
    answers: Answers, draws: list[tuple[Draw, dict[str, Any]]], made: Judge, store: Store, meter: Meter, options: Any, judge_model: Any, logs: Path,
    identity: dict[str, Any], folder: Path | None, progress: Progress | None,
) -> Run:  # fmt: skip
    steps = Steps({}, made, 0, store, options.patience.in_a_row)
    for draw, record in draws:
        store.lend(f"answer {draw.key}", record)
    done = sum(steps.done(draw) for draw, _ in draws)

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(draws))

    steps.tell = tell
    left = [draw for draw, _ in draws if not steps.done(draw)]
    if left and any(True for _ in asking(made)):
        from budge.llm.runs.engine import Engine

        engine = Engine(dict.fromkeys(answers.models, _NOBODY), {"judge": judge_model}, meter, options)
        engine.prepare([(name, "judge") for name in asking(made) if name])
        engine.run(left, steps, logs)
    elif left:
        asyncio.run(_all(steps, left, options.concurrency))
        if steps.fatal is not None:
            raise steps.fatal
    rows: list[dict[str, Any]] = []
    missing = 0
    for (draw, _), row in zip(draws, answers.table.to_dict("records")):
        verdict = store.get(f"judge {draw.key}")
        missing += verdict is None
        new = verdict or {"hit": None, "why": _NOT_YET, "raw": ""}  # kept: nobody else knows how many draws there were
        said = "" if new["raw"] == row["answer"] else new["raw"]
        rows.append({**{str(key): value for key, value in row.items()}, "hit": new["hit"], "why": new["why"], "judge_text": said})
    whole = not missing and answers.info.get("complete", True)
    info = {**answers.info, "judge": identity["judge"], "judged_before_by": answers.info.get("judge", ""), "complete": whole}
    reason = steps.stopped or (f"no verdict on {len(steps.gave_up)} draws, the first: {steps.gave_up[0]}" if steps.gave_up else "")
    return Run(
        Answers.of(rows, info), len(draws), (reason or f"{missing} draws are not judged") if missing else "", meter.calls, meter.asked, meter.cost, folder,
        not_answered=tuple(steps.gave_up),
    )  # fmt: skip


async def _all(steps: Steps, draws: list[Draw], concurrency: int) -> None:
    """Judge by a judge that asks no model of the run; scorers of Inspect may take their time, so that several are under way."""
    places = asyncio.Semaphore(concurrency)

    async def nobody(*_: Any, **__: Any) -> Any:
        raise ModelError("the judge asks a model that it does not name", where=steps.judge.name)

    async def one(draw: Draw) -> None:
        async with places:
            with steps.watched():
                await steps.judgement(draw, nobody)

    await asyncio.gather(*map(one, draws))


def _draws(answers: Answers, prompts: Prompts | Sequence[Prompt] | None) -> list[tuple[Draw, dict[str, Any]]]:
    """Return each draw with the record of its answer, as a run keeps it."""
    given = {} if prompts is None else {prompt.id: prompt for prompt in (prompts if isinstance(prompts, Prompts) else Prompts.of(prompts))}
    unknown = [name for name in dict.fromkeys(answers.table["prompt"]) if given and name not in given]
    if unknown:
        raise DataError("answers are to prompts that are not given", where="prompts", got=unknown[:5], remedy="give the prompts of the run")
    found = []
    for row in answers.table.to_dict("records"):
        known = given.get(row["prompt"])
        text = row.get("original") or (known.text if known is not None else "") or row["sent"] or row["prompt"]
        # An interaction may have moved the expected answer, so that what the draw holds comes before what the prompts hold.
        expected = row.get("expected") or (known.expected if known is not None else "")
        prompt = Prompt(row["prompt"], text, category=row["category"], expected=expected)
        lost = row.get("lost", "") or ("" if row["answer"].strip() else row["why"] or "the answer is empty")
        record = {"sent": row["sent"], "model": row["model"], "text": row["answer"], "why": lost, "stop": "", "original": text, "expected": expected}
        found.append((Draw(row["model"], row["interaction"], prompt, int(row["draw"])), record))
    return found


def _digest(answers: Answers) -> str:
    kept = answers.table[["model", "interaction", "prompt", "draw", "sent", "answer"]].to_dict("records")
    return blake2b(json.dumps(kept, sort_keys=True, default=str).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
