"""How long a toggle on the page takes on german, over HTTP, beside the bare prediction of the same points.

A server process of its own; every constraint is switched off in turn (no answer is at hand from before). Times to the person, to
the first answer about everybody (a stated subsample, or all) and to all 1,000 people, each computed exactly. Clock time: what
an auditor waits for. Ends with an error where the median to the first answer is half a second or more.

Run: ``python benchmarks/page_toggle.py`` (needs budge[serve,models] and the data set; ``--model LR`` for the other one).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def question(name: str):
    from studies.common import model
    from studies.german import fit, predictor, split

    from budge import datasets
    from budge.web import make_question

    data = datasets.german()
    fitted = fit(data, split(data)[0])
    chosen = fitted if name == "both" else {name: fitted[name]}
    return make_question({k: predictor(m) for k, m in chosen.items()}, data.X, model("german"), target=1)


def serve(name: str) -> None:
    from budge.web import serve as serve_page

    serve_page(question(name), ready=lambda address: print(json.dumps(address.to_dict()), flush=True))


def ask(connection, token: str, path: str, record):
    headers = {"Content-Type": "application/json", "X-Budge-Token": token}
    connection.request("POST", f"/api/{path}", json.dumps(record), headers)
    return connection.getresponse()


def toggle(connection, token: str, state, person: int):
    """Seconds to the person, to the first answer about everybody (and how many people that is), and to all."""
    began = time.perf_counter()
    answer = ask(connection, token, "look", {"state": state, "person": person, "window": "benchmark"})
    found = {}
    for line in answer:
        record, now = json.loads(line), time.perf_counter() - began
        if record["kind"] == "person":
            found["person"] = now
        elif record["kind"] == "everybody":
            found.setdefault("first", (now, record["people"]))
            if record["whole"]:
                found["all"] = now
        elif "error" in record["kind"]:
            raise SystemExit(f"the page answered {record}")
    return found


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has had (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare(name: str) -> tuple[float, float]:
    """Clock and CPU seconds to predict every reachable point of the 1,000 people at once, the points being there already."""
    import pandas as pd

    q = question(name)
    points = pd.concat([q.im.enumerate(q.frame.iloc[[i]]).points for i in range(len(q.frame))], ignore_index=True)
    times = []
    for _ in range(5):
        began, spent = time.perf_counter(), time.process_time()
        for predictor in q.predictors.values():
            predictor.predict(points)
        times.append((time.perf_counter() - began, time.process_time() - spent))
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="XGBoost", choices=["XGBoost", "LR", "both"])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.model)
    command = [sys.executable, __file__, "--serve", "--model", options.model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = json.loads(server.stdout.readline())
            connection = http.client.HTTPConnection(address["host"], address["port"])
            state = json.loads(ask(connection, address["token"], "start", {}).read())["state"]
            toggle(connection, address["token"], state, 0)  # the page's first look
            before = cpu(server.pid)
            found = []
            features = ("HasGuarantor", "HistoryOfBankInstallments", "HistoryOfStoreInstallments", "YearsEmployed>=1")
            edits = [{"off": [i]} for i in range(4)] + [{"features": {name: {"actionable": False}}} for name in features]
            edits += [{"features": {"YearsAtResidence": {"max_increase": k}}} for k in (1, 2, 3)]
            for k, edit in enumerate(edits):
                found.append(toggle(connection, address["token"], {**state, **edit}, 7 * k))
            spent = (cpu(server.pid) - before) / len(edits)
        finally:
            server.terminate()
    first, people = (statistics.median(f["first"][k] for f in found) for k in (0, 1))
    person, everybody = (statistics.median(f[key] for f in found) for key in ("person", "all"))
    clock, processor = bare(options.model)
    print(
        f"german, {options.model}, {len(found)} toggles over HTTP, median: the person {person:.3f} s, first answer about everybody "
        f"({people:.0f} people) {first:.3f} s, all 1,000 exactly {everybody:.3f} s; bare prediction of all points {clock:.3f} s: "
        f"{everybody / clock:.1f} x. CPU of the server {spent:.3f} s a toggle, of the prediction {processor:.3f} s: {spent / processor:.1f} x"
    )
    if first >= 0.5:
        raise SystemExit("a toggle takes half a second or more")


if __name__ == "__main__":
    main()
