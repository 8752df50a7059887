"""Hostile specs and expressions: each is refused with an error of budge or read correctly, within the limits of a refusal."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_expressions import expressions
from hostile_specs import HEAD, large, small, spec
from isolated import MEGABYTES, SECONDS, Judged, judged

from budge.errors import BudgeError
from budge.expressions import parse
from budge.interaction import InteractionModel
from budge.spec import limits


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


def assert_safe(action: Callable[[Any], str], items: list[Any]) -> dict[str, Judged]:
    """Assert that each item is taken or refused within the limits."""
    found = {item.name if isinstance(item, Path) else str(item): one for item, one in zip(items, judged(action, items))}
    bad = [
        f"{name[:80]}: {kind} after {seconds:.1f} s and {most:.0f} MB: {said[:200]}"
        for name, (kind, said, seconds, most) in found.items()
        if kind not in ("done", "refused") or seconds > SECONDS or most > MEGABYTES
    ]
    assert not bad, "\n".join(bad)
    return found


def written(folder: Path, files: object) -> list[object]:
    paths: list[object] = []
    for name, content in files:  # type: ignore[attr-defined]
        paths.append(folder / name)
        (folder / name).write_bytes(content)
    return paths


def test_small_hostile_specs_are_refused_or_read(tmp_path: Path) -> None:
    paths = written(tmp_path, small())
    assert len(paths) > 350
    found = assert_safe(check, paths)
    assert sum(kind == "refused" for kind, *_ in found.values()) > 300
    assert {
        name
        for name in found
        if name.startswith(("alias", "tag", "merge", "deep", "dotted", "twice", "key", "inner")) and found[name][0] == "done"
    } == set()
    assert not list(tmp_path.glob("x"))  # nothing that a tag or an expression names was made


@pytest.mark.parametrize("times", [pytest.param(1, id="within"), pytest.param(3, id="beyond")])
@pytest.mark.parametrize("heavy", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_long_specs_are_answered_at_once(tmp_path: Path, times: int, heavy: bool) -> None:
    found = assert_safe(check, written(tmp_path, list(large(times))[:: 1 if heavy or times > 1 else 2]))
    if times > 1:
        assert {name for name, one in found.items() if one[0] == "refused"} >= {
            "features.json",
            "dummies.json",
            "levels.json",
            "if_then.json",
            "effects.json",
        }
        assert "at most 10,000 features (got 29700)" in found["features.json"][1]
    else:
        assert found["features.json"][0] == found["levels.json"][0] == "done"


def test_hostile_expressions_are_refused_or_evaluated() -> None:
    texts: list[object] = list(dict.fromkeys(expressions()))
    assert len(texts) >= 131
    found = assert_safe(evaluate, texts)
    assert sum(kind == "refused" for kind, *_ in found.values()) > len(texts) / 2
    for text in ("a.__class__", "__import__('os')", "lambda: 1", "[x for x in [1]]", "10 ** 10000", "(" * 100_000):
        assert found[text][0] == "refused", text


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
    found = assert_safe(check, paths)
    assert {kind for kind, *_ in found.values()} == {"refused"}
    assert "at most 200,000 bytes of YAML" in found["huge.yaml"][1]


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
