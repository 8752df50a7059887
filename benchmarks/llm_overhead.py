"""What a run costs beside the model: CPU time a draw against Inspect's own evaluation of as many samples; and what stopping early saves.

Run: ``python benchmarks/llm_overhead.py`` (needs budge[llm]; no network, the model answers at once).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import inspect_ai
import numpy as np
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

from budge import llm
from budge.stats import anytime_rule, sprt_rule

DRAWS = 150


def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", "Paris, I think.")
    output.usage = ModelUsage(input_tokens=10, output_tokens=4, total_tokens=14)
    return output


def bare(texts: list[str], logs: str) -> None:
    samples = [Sample(input=text, target="Paris") for text in texts]
    task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    model = get_model("mockllm/model", custom_outputs=reply)
    inspect_ai.eval(task, model=model, display="none", log_dir=logs, log_realtime=False, ctl_server=False, max_samples=8)


def timed(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def overhead() -> None:
    facts, model = llm.benchmark("facts"), get_model("mockllm/model", custom_outputs=reply)
    with tempfile.TemporaryDirectory() as folder:
        ask = {"judge": "contains()", "base": False, "seed": 1}
        llm.run(model, facts, {"typos": "typos(most=2)"}, n=2, **ask)  # everything is imported
        ours, theirs = [], []
        for repeat in range(5):
            run = Path(folder) / f"run{repeat}"
            ours.append(timed(lambda run=run: llm.run(model, facts, {"typos": "typos(most=2)"}, n=DRAWS, folder=run, **ask)))
            texts = [facts[i % len(facts)].text for i in range(DRAWS)]
            theirs.append(timed(lambda texts=texts, repeat=repeat: bare(texts, f"{folder}/logs{repeat}")))
        again = timed(lambda: llm.run(model, facts, {"typos": "typos(most=2)"}, n=DRAWS, folder=Path(folder) / "run0", **ask))
    mine, other = np.median(ours) / DRAWS * 1e3, np.median(theirs) / DRAWS * 1e3
    print(
        f"{DRAWS} draws with rewrite, journal and judge: {mine:.1f} ms CPU a draw, Inspect alone {other:.1f} ms: "
        f"{np.median(np.array(ours) / np.array(theirs)):.2f} x; the same call again: {again / DRAWS * 1e3:.2f} ms a draw, no call"
    )


def savings() -> None:
    for rate, fixed in ((0.227, 85), (0.277, 168)):
        sprt, anytime = sprt_rule(threshold=0.4, rate=rate), anytime_rule(fixed, threshold=0.4)
        high = sprt.at(0.55).expected_calls, anytime.at(0.55).expected_calls
        print(
            f"base rate {rate:.1%}, threshold 40 %, fixed {fixed} draws: SPRT {sprt.at(rate).expected_calls:.0f} on average "
            f"({1 - sprt.at(rate).expected_calls / fixed:.0%} saved), anytime {anytime.at(rate).expected_calls:.0f} "
            f"({1 - anytime.at(rate).expected_calls / fixed:.0%}); at a rate of 55 % {high[0]:.0f} and {high[1]:.0f}"
        )


if __name__ == "__main__":
    savings()
    overhead()
