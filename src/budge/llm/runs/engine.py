"""Inspect AI does the asking: providers, concurrency, retries, logs. This module and `engine_calls` are all that know it.

A draw is a sample of an Inspect task: our solver rewrites and asks, our scorer judges. Inspect's cache stays off, since a cached
completion is not a new draw; what was answered is in our journal instead, and is no sample any more.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from budge.errors import ModelError, StorageError
from budge.llm.runs.calls import Calls, Options, load_inspect
from budge.llm.runs.draws import Draw
from budge.llm.runs.meter import Meter
from budge.llm.runs.steps import Steps

__all__ = ["Engine", "Options"]

_ROOM = "make room; what was answered is kept, and the same call goes on"


class Engine:
    """The models of a run, made once; asks batches of draws.

    Parameters
    ----------
    models
        Models by label: names as Inspect spells them, `ChatModel`, or Inspect's own `Model`.
    helpers
        The models that interactions ("rewriter") and judges ("judge") ask when they name none.
    """

    def __init__(self, models: Mapping[str, Any], helpers: Mapping[str, Any], meter: Meter, options: Options):
        self._options = options
        self._calls = Calls(models, helpers, meter, options)

    def prepare(self, named: Sequence[tuple[str, str]]) -> None:
        """Make the models that interactions and judges name, each with its role: one that cannot be made is said at once."""
        for name, role in named:
            self._calls.prepare(name, role)

    def run(self, draws: Sequence[Draw], steps: Steps, logs: Path) -> None:
        """Ask and judge all draws that are not done. What could not be answered is told by `steps`.

        Raises
        ------
        ModelError
            An endpoint refused in a way that no retry changes.
        """
        inspect = load_inspect()
        tasks = []
        for label, model in self._calls.models.items():
            mine = {draw.key: draw for draw in draws if draw.model == label}
            if mine:
                tasks.append(self._task(inspect, label, model, mine, steps))
        if not tasks:
            return
        steps.fresh()
        with _quietly():
            try:
                results = inspect.eval(
                    tasks, display="none", log_dir=str(logs), log_level="critical", fail_on_error=True, log_header_only=True,
                    log_realtime=False, ctl_server=False, score_display=False, log_refusals=False, log_model_api=False,
                    max_samples=self._options.concurrency, max_tasks=len(tasks),
                )  # fmt: skip
            except Exception as error:
                if steps.fatal is None and (isinstance(error, OSError) or "log_dir" in str(error)):
                    raise StorageError(f"cannot be written: {self._calls.redact(str(error))}", where=str(logs), remedy=_ROOM) from error
                raise steps.fatal or error from None
        if steps.fatal is not None:
            raise steps.fatal
        if len(results) < len(tasks) or any(log.status == "cancelled" for log in results):
            raise KeyboardInterrupt  # Inspect takes it for itself, and tells by what it returns
        for log in results:
            if log.status != "success":
                self._explain(log)

    def _task(self, inspect: Any, label: str, model: Any, draws: dict[str, Draw], steps: Steps) -> Any:
        from inspect_ai.dataset import MemoryDataset, Sample
        from inspect_ai.model import ChatMessageUser, ModelOutput
        from inspect_ai.scorer import Score, mean, scorer
        from inspect_ai.solver import solver

        @solver(name="budge_ask")
        def asking() -> Any:
            async def solve(state: Any, generate: Any) -> Any:
                draw = draws[str(state.sample_id)]
                with steps.watched():
                    record = await steps.answer(draw, self._calls.ask)
                if record is not None:
                    state.messages = [ChatMessageUser(content=record["sent"] or draw.prompt.text)]
                    state.output = ModelOutput.from_content(str(model), record["text"])
                    state.messages.append(state.output.message)
                return state

            return solve

        @scorer(metrics=[mean()], name="budge_judge")
        def judging() -> Any:
            async def score(state: Any, target: Any) -> Any:
                with steps.watched():
                    record = await steps.judgement(draws[str(state.sample_id)], self._calls.ask)
                if record is None or record["hit"] is None:  # not asked, or unresolved: no number stands for that
                    return None
                return Score(value=float(record["hit"]), explanation=record["why"] or None)

            return score

        samples = [
            Sample(
                input=draw.prompt.text, id=key, target=draw.prompt.expected,
                metadata={"interaction": draw.interaction, "prompt": draw.prompt.id, "category": draw.prompt.category, "draw": draw.index},
            )
            for key, draw in draws.items()
        ]  # fmt: skip
        return inspect.Task(
            dataset=MemoryDataset(samples, name="draws"), solver=asking(), scorer=judging(), model=model, name="budge_llm",
            metadata={"model": label, "judge": steps.judge.name},
        )  # fmt: skip

    def _explain(self, log: Any) -> None:
        """Inspect itself failed: a full disk, a bug of somebody's."""
        said = self._calls.redact(log.error.message if log.error else "it did not say why")
        if any(os.strerror(code) in said for code in (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)):
            raise StorageError(said, where=str(log.location), remedy=_ROOM)
        raise ModelError(f"the run failed: {said}", where=str(log.location))


@contextmanager
def _quietly() -> Iterator[None]:
    """Inspect puts handlers on the root logger and a hook on the interpreter; a library leaves them as they were."""
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, sys.excepthook
    try:
        yield
    finally:
        root.handlers[:], sys.excepthook = handlers, hook
        root.setLevel(level)
