"""`llm.report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from budge.llm.answers import Answers
from budge.llm.claims.verdicts import test
from budge.llm.runs.folder import load
from budge.llm.runs.run import Run

__all__ = ["report"]


def report(
    run: Run | Answers | str | Path, path: str | Path, *, threshold: float, over: str, title: str = "", examples: int = 3, overwrite: bool = False,
    **test_options: Any,
) -> Path:  # fmt: skip
    """Write one page: what was asked, the verdict per model and interaction, answers that flipped side by side, how to repeat it.

    Parameters
    ----------
    run
        A run, its answers, its folder, or a file of answers.
    threshold, over, test_options
        As in `llm.test`: `claim`, `alpha`, `adjust`, `method`, …
    examples
        Answers that flipped, per model and interaction.
    """
    from budge.report.llm_page import write_llm_page

    answers = run.answers if isinstance(run, Run) else run if isinstance(run, Answers) else load(run)
    verdicts = test(answers, threshold=threshold, over=over, **test_options)
    return write_llm_page(answers, verdicts, path, title=title, examples=examples, overwrite=overwrite)
