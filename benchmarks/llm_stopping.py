"""Stopping early over a family of interactions: true claims shown, calls, and false claims.

Four interactions with the rates .15, .15, .2 and .6, the threshold .4: three claims "below" are true. The rule is an SPRT that is planned for the rate .2
at alpha 5 % over the family; the fixed design is the one with the same error and power per test. Simulated first, then asked from a server on the
loopback at concurrency 1 and 8. Run: ``python benchmarks/llm_stopping.py [--runs 20000] [--live 8]``.
"""

from __future__ import annotations

import argparse
import json
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from budge import llm, stats

RATES = {"one": 0.15, "two": 0.15, "three": 0.2, "four": 0.6}
TRUE = 3
PROMPTS = llm.Prompts.of(f"Question {i}?" for i in range(40))
RULE = stats.sprt_rule(threshold=0.4, rate=0.2)


def simulated(runs: int) -> None:
    """Print the share of true claims, the calls, and the probability of any false claim with all four at the threshold."""
    rng, each = np.random.default_rng(1), RULE.shared(len(RATES))
    fixed = len(RATES) * each.fixed_n
    made = [each.run(rng.random((runs, each.max_n)) < rate) for rate in RATES.values()]
    claimed = sum((one.verdict == "below").mean() for one in made[:TRUE]) / TRUE
    calls = float(np.sum([one.calls for one in made], axis=0).mean())
    print(f"simulated, {runs:,} runs: {claimed:.1%} of the true claims, {calls:.1f} of {fixed} calls ({calls / fixed:.0%})")
    false = np.any([each.run(rng.random((runs, each.max_n)) < 0.4).verdict == "below" for _ in RATES], axis=0).mean()
    print(f"  any false claim, all four at the threshold: {false:.2%} (standard error {np.sqrt(false * (1 - false) / runs):.2%}); level 5 %")
    prompts = rng.permutation(40) < 16  # prompts that always or never hit, shared by the interactions: the draws are the same
    same = (each.run(prompts[rng.integers(40, size=(runs, each.max_n))]).verdict == "below").mean()
    print(f"  the same with prompts that always or never hit: {same:.2%} (standard error {np.sqrt(same * (1 - same) / runs):.2%})")


@contextmanager
def served() -> Iterator[str]:
    """Serve a model that hits at the rate of the interaction that the prompt names."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = body["messages"][-1]["content"]
            rate = next(rate for name, rate in RATES.items() if text.startswith(f"[{name}]"))
            said = "yes" if np.random.default_rng(body["seed"]).random() < rate else "no"
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
            told = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "mock", "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def live(runs: int, concurrency: int) -> None:
    """Print the same from runs that really ask, tested by `llm.test`."""
    fixed = runs * len(RATES) * RULE.shared(len(RATES)).fixed_n
    ways = {name: llm.prefix(f"[{name}] ") for name in RATES}
    true = false = calls = 0
    with served() as url:
        for seed in range(runs):
            model = llm.ChatModel("mock", url)
            made = llm.run(model, PROMPTS, ways, judge="contains(yes)", sequential=RULE, base=False, seed=seed, concurrency=concurrency)
            table = llm.test(made, threshold=0.4, over="these", adjust="holm").table.set_index("interaction")
            below = table["verdict"] == "below"
            true, false, calls = true + int(below.iloc[:TRUE].sum()), false + int(below["four"]), calls + made.calls
    shown = f"{true} of {TRUE * runs} true claims shown, {false} false"
    print(f"live, concurrency {concurrency}, {runs} runs: {shown}, {calls} of {fixed} calls ({calls / fixed:.0%})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--live", type=int, default=8)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    simulated(args.runs)
    for many in (1, 8):
        live(args.live, many)
