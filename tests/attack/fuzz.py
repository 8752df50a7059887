"""Fuzzes the readers of budge: specs, expressions, tables and saved runs.

    python tests/attack/fuzz.py spec --executions 100000 --seed 1

Inputs are led by coverage where atheris is installed, and are seeded mutations elsewhere (or with ``--plain``). A finding is any error that is not
budge's own, or an input that takes more than two seconds of CPU (of an ordinary machine) or 300 MB; the input is printed and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "src")]
from cpu import allowed  # noqa: E402

SECONDS, MEGABYTES = allowed(2), 300.0
WORDS = [
    b"budge: 1\n",
    b"features:",
    b"{type: binary}",
    b"[0, 5]",
    b"constraints:",
    b"- rule: ",
    b"if_then",
    b"one_hot",
    b"&a ",
    b"*a",
    b"!!x ",
    b"<<: ",
    b"\xff",
    b"\0",
    b"1e999",
    b"-inf",
    b"'own'",
    b"before.",
    b"action.",
    b" and ",
    b" in [",
    b"where(",
    b"normal(0, 1)",
    b"((((",
    b"**",
    b"\n",
    b",",
    b'"',
    b"[[",
    b"= ",
    b"PAR1",
    b"99999999",
]


def targets() -> dict[str, tuple[Callable[[bytes], object], list[bytes]]]:
    """Return what is fuzzed, by name: a function of bytes, and inputs to start from."""
    from budge import read_table
    from budge.audit.loading import load_audit
    from budge.expressions import parse
    from budge.people import People
    from budge.spec.reading import read_model

    folder = Path(tempfile.mkdtemp(prefix="budge-fuzz-"))
    rng = np.random.default_rng(0)
    env = {(layer, name): np.array([0.0, 1.0, 5.0, np.nan]) for layer in ("value", "before", "action") for name in ("a", "b")}

    def spec(data: bytes) -> None:
        path = folder / f"spec.{('yaml', 'json', 'toml')[data[0] % 3]}"
        path.write_bytes(data[1:])
        str(read_model(path).describe())

    def expression(data: bytes) -> None:
        text = data[1:].decode("utf-8", "surrogateescape")
        if "BUDGE_FUZZ_FAULT" in os.environ and "**" in text:  # a test plants it
            raise ZeroDivisionError("planted")
        found = parse(text, distributions=bool(data[0] % 2))
        levels = {"c": ("rent", "own")}
        if not found.check(levels, ["a", "b", "c"]):
            found.evaluate(env | {("value", "c"): np.zeros(4)}, levels=levels, rng=rng, size=4)
            found.range(
                {(layer, name): (0.0, 5.0) for layer in ("value", "before", "action") for name in ("a", "b")}, levels=levels
            )

    def table(data: bytes) -> None:
        suffix = ("csv", "tsv", "parquet", "txt", "jsonl", "csv.gz", "feather")[data[0] % 7]
        path = folder / f"table.{suffix}"
        path.write_bytes(data[1:])
        if suffix != "parquet":
            read_table(path)
        people = People.of(str(path))
        for part in itertools.islice(people.parts, 3):
            people.read(part)

    run = saved_run(folder)
    members = sorted(p for p in run.rglob("*") if p.is_file())
    contents = [p.read_bytes() for p in members]

    def saved(data: bytes) -> None:
        which = data[0] % len(members)
        members[which].write_bytes(data[1:])
        try:
            found = load_audit(run)
            str(found)
        finally:
            members[which].write_bytes(contents[which])

    yaml = HERE.parents[1] / "src" / "budge" / "datasets"
    specs = [b"\0" + p.read_bytes() for p in sorted(yaml.rglob("*.yaml"))[:6]]
    from hostile_specs import BODY, TABLE, small

    specs += [
        b"\1" + json.dumps(BODY).encode(),
        b"\2" + TABLE.encode(),
        *(bytes([{"yaml": 0, "json": 1, "toml": 2}[n.rpartition(".")[2]]]) + c for n, c in small() if len(c) < 2000),
    ]
    from hostile_expressions import expressions

    texts = [b"\1" + t.encode("utf-8", "surrogatepass") for t in expressions() if len(t) < 300]
    texts += [
        b"\0" + t
        for t in (
            b"a >= 12 * b and c == 'own'",
            b"min(a, b) + abs(before.a) < 3 or not b",
            b"c in ['own', 'rent']",
            b"where(a > 1, a ** 2, b // 2) % 3",
        )
    ]
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 2.5], "c": ["x", "y,z", '"q"']})
    stream, feather = io.BytesIO(), io.BytesIO()
    with contextlib.suppress(ImportError):
        frame.to_parquet(stream)
        frame.to_feather(feather)
    tables = [
        b"\0" + frame.to_csv().encode(),
        b"\0" + frame.to_csv(index=False).encode(),
        b"\1" + frame.to_csv(sep="\t", index=False).encode(),
        b"\2" + stream.getvalue(),
        b"\3" + frame.to_csv(sep=";", decimal=",", index=False).encode("utf-16"),
        b"\4" + frame.to_json(orient="records", lines=True).encode(),
        b"\5" + gzip.compress(frame.to_csv(index=False).encode()),
        b"\6" + feather.getvalue(),
    ]
    runs = [bytes([i]) + content for i, content in enumerate(contents)]
    return {"spec": (spec, specs), "expression": (expression, texts), "table": (table, tables), "run": (saved, runs)}


def saved_run(folder: Path) -> Path:
    """Make and save a small audit; return its folder."""
    import budge

    im = budge.InteractionModel({"a": {"type": "integer", "bounds": [0, 3]}, "b": {"type": "binary"}})
    people = pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 1, 0, 1]})
    budge.audit(lambda t: (t["a"] + t["b"] > 1).astype(int), people, im, target=1, n=29, seed=0).save(folder / "run")
    return folder / "run"


class Finding(Exception):  # noqa: N818 (not an error of the program)
    """What an input did that no input may."""


def guarded(action: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Return the function with errors of budge taken as answers, and limits on time and memory."""
    from budge.errors import BudgeError

    def late(*_: object) -> None:
        raise Finding(f"more than {SECONDS} s of CPU")

    signal.signal(signal.SIGVTALRM, late)

    def most() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def once(data: bytes) -> None:
        if not data:
            return
        before = most()
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            action(data)
        except BudgeError:
            pass
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if (now := most()) > max(MEGABYTES, before + MEGABYTES / 2):  # what atheris keeps grows, by little each time
            raise Finding(f"{now - before:.0f} MB more")

    return once


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return the bytes with a few things changed."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(6):
            case 0 if found:
                found[at % len(found)] ^= 1 << rng.randrange(8)
            case 1:
                found[at:at] = rng.choice(WORDS)
            case 2:
                del found[at : at + rng.randrange(1, 20)]
            case 3:
                found[at:at] = found[at : at + rng.randrange(1, 60)]
            case 4:
                other = rng.choice(others)
                cut = rng.randrange(len(other) + 1)
                found[at:] = other[cut : cut + 400]
            case _:
                found[at:at] = bytes([rng.randrange(256)]) * rng.choice([1, 1, 3, 50])
    return bytes(found[:20_000])


def plain(name: str, executions: int, seed: int) -> tuple[int, list[tuple[bytes, str]]]:
    """Run seeded mutations; return how many ran, and (input, what happened) of each finding."""
    action, starts = targets()[name]
    once, rng, found = guarded(action), random.Random(f"{name} {seed}"), []
    for i in range(executions):
        data = starts[i] if i < len(starts) else mutated(rng.choice(starts), starts, rng)
        try:
            once(data)
        except Exception as error:
            found.append((data, f"{type(error).__name__}: {error}"))
    return executions, found


def led(name: str, executions: int, seed: int) -> None:
    """Run inputs that atheris leads by coverage; it ends the process, with code 77 at a finding."""
    import atheris

    with atheris.instrument_imports(include=["budge"]):
        action, starts = targets()[name]
    once = guarded(action)
    corpus = Path(tempfile.mkdtemp(prefix="budge-corpus-"))
    for i, data in enumerate(starts):
        (corpus / str(i)).write_bytes(data)
    (corpus.parent / f"{corpus.name}.dict").write_text(
        "".join('"' + "".join(f"\\x{b:02x}" for b in word) + '"\n' for word in WORDS)
    )
    options = [
        f"-runs={executions}",
        f"-seed={seed}",
        "-max_len=8192",
        "-print_final_stats=1",
        "-verbosity=0",
        "-rss_limit_mb=0",
        "-timeout=60",
        f"-dict={corpus}.dict",
        f"-artifact_prefix={corpus}.",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


def main() -> int:
    """Fuzz one reader from the command line."""
    parser = argparse.ArgumentParser(description="Fuzz a reader of budge.")
    parser.add_argument("target", choices=["spec", "expression", "table", "run"])
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="Seeded mutations, without atheris.")
    given = parser.parse_args()
    os.chdir(tempfile.mkdtemp(prefix="budge-fuzz-"))
    if not given.plain:
        with contextlib.suppress(ImportError):
            led(given.target, given.executions, given.seed)
    start = time.process_time()
    ran, found = plain(given.target, given.executions, given.seed)
    print(f"{ran:,} executions in {time.process_time() - start:.0f} s of CPU, {len(found)} findings")
    for data, what in found[:20]:
        print(f"{what[:300]}\n  {data[:200]!r}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
