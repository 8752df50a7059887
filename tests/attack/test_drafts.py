"""Tables from which no draft can be made in time, or whose draft could not be read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from isolated import attempt

from budge.errors import DataError
from budge.spec.suggest import suggest
from cpu import within


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    return {
        "dummies": pd.DataFrame(rng.integers(0, 2, (50, 2000)), columns=[f"c{i}" for i in range(2000)]),
        "equal dummies": pd.DataFrame(np.repeat(rng.integers(0, 2, (400, 1)), 600, 1), columns=[f"c{i}" for i in range(600)]),
        "names in names": pd.DataFrame(rng.integers(0, 2, (60, 1500)), columns=["_".join(["a"] * (i + 1)) for i in range(1500)]).iloc[:, :400],
        "levels": pd.DataFrame({f"c{i}": [f"v{j % 40}" for j in range(300)] for i in range(300)}),
    }


def draft(frame: pd.DataFrame) -> int:
    return len(suggest(frame).to_text())


@pytest.mark.parametrize("kind", sorted(tables()))
def test_a_draft_is_made_in_time(kind: str) -> None:
    """Relations were looked for among all pairs: 600 equal dummies took minutes, names within names two gigabytes."""
    with within(4):
        made = attempt(draft, tables()[kind])
    assert made.kind == "done", str(made)
    assert made.megabytes < 300, str(made)


def test_a_draft_states_among_how_many_columns_relations_were_looked_for() -> None:
    frame = pd.DataFrame(np.eye(300, dtype=int), columns=[f"job_{i}" for i in range(300)])
    found = suggest(frame)
    assert [f.kind for f in found.findings] == ["one_hot"]
    assert "first 200 columns of a kind" in found.to_text()
    assert "first 200 columns" not in suggest(frame.iloc[:, :100]).to_text()


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (pd.DataFrame({"n" * 1001: [1, 2, 3]}), "more than 1,000 characters"),
        (pd.DataFrame({"a": ["x" * 300_000, "y"], "b": [1, 2]}), "larger than a YAML spec may be"),
        (pd.DataFrame(np.zeros((2, 10_001), int), columns=[f"c{i}" for i in range(10_001)]), "more columns than a spec has features"),
    ],
    ids=["name", "level", "columns"],
)
def test_a_draft_that_could_not_be_read_is_not_written(tmp_path: Path, frame: pd.DataFrame, what: str) -> None:
    def made(path: Any) -> None:
        suggest(frame).write(path)

    with pytest.raises(DataError, match=what):
        made(tmp_path / "spec.yaml")
    assert not (tmp_path / "spec.yaml").exists()
