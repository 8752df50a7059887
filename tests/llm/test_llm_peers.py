"""The comparison with other packages: what the docs state of `budge` is what the program computes, and a peer that is absent is left out with a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("llm_peers", ROOT / "benchmarks" / "llm_peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_docs_state_what_the_program_computes(peers: ModuleType) -> None:
    page = (ROOT / "docs" / "explanation" / "language-models.md").read_text(encoding="utf-8")
    rows = list(peers.rates([]))
    assert [row["n"] for row in rows] == [30, 100, 440]
    for row in rows:
        assert f"| {' | '.join(map(str, row.values()))} |\n" in page
        assert float(row["least coverage"].rstrip("%")) >= 95.0
        assert float(row["most false claims"].rstrip("%")) <= 5.0


def test_an_absent_peer_is_left_out_with_a_reason(peers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(peers.importlib, "import_module", absent)
    assert list(peers.peers()) == []
    assert "evalstats is left out: No module named 'evalstats' (pip install evalstats)" in capsys.readouterr().out
    rows = [*peers.looking([], 5), *peers.clusters([], 3), *peers.judged([], 3), *peers.models([], 3)]
    assert {str(row.get("method", "budge")).split(",")[0] for row in rows} == {"budge", "pooled (refused by budge)", "judge alone", "labels alone"}
    assert peers.scored(0.5, [(0.4, 0.6), (0.6, 0.8), None, None]) == "50.0%, 0.200 (error 50%)"
    assert peers.scored(0.5, [(0.4, 0.6), (0.1, 0.3)], below=True) == "50.0%"
