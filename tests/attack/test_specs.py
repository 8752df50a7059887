"""Hostile specs and expressions: each is refused with an error of budge or read correctly, within the limits of a refusal."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest
from hostile_expressions import expressions
from hostile_specs import HEAD, large, small, spec
from isolated import MEGABYTES, SECONDS, attempt

from budge.errors import BudgeError
from budge.expressions import parse
from budge.interaction import InteractionModel
from budge.spec import limits

Judged = tuple[str, str, float, float]


def check(path: Path) -> str:
    """Read a spec as `budge check` does, and write what it prints."""
    from budge.cli.check import check as command

    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        command(path, None, 25, False, False, False, False)
    return written.getvalue()[:60]


def evaluate(text: str) -> str:
    """Parse, check and evaluate an expression, alone and in a spec."""
    said = []
    for distributions in (False, True):
        try:
            found = parse(text, distributions=distributions)
            found.check({}, ["a", "b"])
            rng = np.random.default_rng(0)
            env = {
                (layer, name): np.array([0.0, 1.0, 5.0, np.nan]) for layer in ("value", "before", "action") for name in ("a", "b")
            }
            said.append(str(found.evaluate(env, rng=rng, size=4))[:40])
        except BudgeError as error:
            said.append(str(error)[:40])
    InteractionModel.from_spec(
        {"features": {"a": {"type": "integer", "bounds": [0, 5]}, "b": {"type": "binary"}}, "constraints": [{"rule": text}]}
    )
    return said[0]


def judge(action: object, items: list[object]) -> list[Judged]:
    """Call the function with each item; return for each what became of it, its CPU time, and the most memory so far."""
    found = []
    for item in items:
        start = time.process_time()
        try:
            kind, said = "done", action(item)  # type: ignore[operator]
        except BudgeError as error:
            kind, said = "refused", f"{type(error).__name__}: {error}"[:500]
        except BaseException as error:
            kind, said = "raw error", repr(error)[:500]
        found.append((kind, said, time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    return found


def assert_safe(action: object, items: list[object]) -> dict[str, Judged]:
    """Assert that each item is taken or refused within the limits."""
    outcome = attempt(judge, action, items, hung=120.0)
    if outcome.kind != "done" and len(items) > 1:
        for half in (items[: len(items) // 2], items[len(items) // 2 :]):
            assert_safe(action, half)
    assert outcome.kind == "done", f"{str(items[0])[:200]}: {outcome}"
    judged, bad = list(outcome.value), []
    for i, item in enumerate(items):
        if judged[i][2] > SECONDS or judged[i][3] > MEGABYTES:  # the memory is the most of all items so far, and the machine may be busy
            judged[i] = attempt(judge, action, [item], hung=120.0).value[0]
        kind, said, seconds, most = judged[i]
        name = item.name if isinstance(item, Path) else repr(item)[:80]
        if kind not in ("done", "refused") or seconds > SECONDS or most > MEGABYTES:
            bad.append(f"{name}: {kind} after {seconds:.1f} s and {most:.0f} MB: {said[:200]}")
    assert not bad, "\n".join(bad)
    return {item.name if isinstance(item, Path) else str(item): found for item, found in zip(items, judged)}


def written(folder: Path, files: object) -> list[object]:
    paths: list[object] = []
    for name, content in files:  # type: ignore[attr-defined]
        paths.append(folder / name)
        (folder / name).write_bytes(content)
    return paths


def test_small_hostile_specs_are_refused_or_read(tmp_path: Path) -> None:
    paths = written(tmp_path, small())
    assert len(paths) > 350
    judged = assert_safe(check, paths)
    assert sum(kind == "refused" for kind, *_ in judged.values()) > 300
    assert {
        name
        for name in judged
        if name.startswith(("alias", "tag", "merge", "deep", "dotted", "twice", "key", "inner")) and judged[name][0] == "done"
    } == set()
    assert not list(tmp_path.glob("x"))  # nothing that a tag or an expression names was made


@pytest.mark.parametrize("times", [pytest.param(1, id="within"), pytest.param(3, id="beyond")])
@pytest.mark.parametrize("heavy", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_long_specs_are_answered_at_once(tmp_path: Path, times: int, heavy: bool) -> None:
    judged = assert_safe(check, written(tmp_path, list(large(times))[:: 1 if heavy or times > 1 else 2]))
    if times > 1:
        assert {name for name, found in judged.items() if found[0] == "refused"} >= {
            "features.json",
            "dummies.json",
            "levels.json",
            "if_then.json",
            "effects.json",
        }
        assert "at most 10,000 features (got 29700)" in judged["features.json"][1]
    else:
        assert judged["features.json"][0] == judged["levels.json"][0] == "done"


def test_hostile_expressions_are_refused_or_evaluated() -> None:
    texts: list[object] = list(dict.fromkeys(expressions()))
    assert len(texts) >= 131
    judged = assert_safe(evaluate, texts)
    assert sum(found[0] == "refused" for found in judged.values()) > len(texts) / 2
    for text in ("a.__class__", "__import__('os')", "lambda: 1", "[x for x in [1]]", "10 ** 10000", "(" * 100_000):
        assert judged[text][0] == "refused", text


def test_paths_that_never_end_are_refused(tmp_path: Path) -> None:
    paths: list[object] = []
    for suffix in ("yaml", "json", "toml"):
        pipe, huge, folder, loop, zero = (tmp_path / f"{name}.{suffix}" for name in ("pipe", "huge", "folder", "loop", "zero"))
        os.mkfifo(pipe)
        huge.write_text(HEAD)
        os.truncate(huge, 5 << 30)
        folder.mkdir()
        loop.symlink_to(loop)
        zero.symlink_to("/dev/zero")
        paths += [pipe, huge, folder, loop, zero]
    judged = assert_safe(check, paths)
    assert {kind for kind, *_ in judged.values()} == {"refused"}
    assert "at most 200,000 bytes of YAML" in judged["huge.yaml"][1]


@pytest.mark.parametrize("name", [name for name in limits.__all__ if name.isupper()])
def test_every_limit_is_documented(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spec-format.md").read_text()
    assert f"{getattr(limits, name):,}" in page.partition("## Limits")[2], name


def test_a_spec_at_a_limit_is_read() -> None:
    import json

    full = json.loads(spec(features={f"f{i}": "fixed" for i in range(limits.FEATURES)}))
    assert len(InteractionModel.from_spec(full).features) == limits.FEATURES
    full["features"]["one more"] = "fixed"
    with pytest.raises(BudgeError, match="at most 10,000 features"):
        InteractionModel.from_spec(full)
