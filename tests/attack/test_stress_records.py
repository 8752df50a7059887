"""Records of stress tests for a report: each place may hold anything, and what contradicts itself is refused."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
import runs_kit as kit
from isolated import attempt

import budge
from budge.errors import InputError
from budge.report.saved import ablation_from, sensitivity_from

READ = {"ablation": ablation_from, "sensitivity": sensitivity_from}


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    im = budge.InteractionModel(kit.MODEL.features, [budge.constraints.Rule("income <= 8")])
    one = budge.ablate(kit.approve, kit.people(6), im, target=1, n=60, seed=1).to_dict()
    two = budge.sensitivity(kit.approve, kit.people(6), {"a": im, "b": kit.MODEL}, target=1, n=60, seed=1).to_dict()
    return {"ablation": json.loads(json.dumps(one)), "sensitivity": json.loads(json.dumps(two))}


@pytest.mark.parametrize("kind", READ)
def test_honest_records_are_read(records: dict[str, Any], kind: str) -> None:
    assert str(READ[kind](records[kind]))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("ablation", "info.alpha", 2.0), ("ablation", "info.alpha", math.nan), ("ablation", "info.people", -1), ("ablation", "info.people", 0),
        ("ablation", "info.threshold", "0.1"), ("ablation", "ranking.0.gain", 7.0), ("ablation", "ranking.0.low", 0.99), ("ablation", "ranking.0.gain", "x"),
        ("ablation", "ranking.0.newly_reachable", -3), ("ablation", "ranking.0.relaxation", []), ("ablation", "ranking", {"a": 1}),
        ("ablation", "ranking.1.relaxation", "lift steps of income"), ("ablation", "table.0.relaxation", "another"), ("ablation", "table.0.before", math.nan),
        ("ablation", "table.0.person", {}), ("ablation", "left_out", "all"), ("ablation", "left_out", [1]), ("ablation", "info", []),
        ("sensitivity", "info.members", ["a", "a"]), ("sensitivity", "info.members", "ab"), ("sensitivity", "table.0.rho", 1.5),
        ("sensitivity", "table.0.hits", 61), ("sensitivity", "table.0.n", math.inf), ("sensitivity", "table.0.member", "c"), ("sensitivity", "table", None),
        ("sensitivity", "people.0.rho_max", -0.5), ("sensitivity", "people.0.rho_min", 0.99), ("sensitivity", "info.asked", 10**30),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(records: dict[str, Any], kind: str, path: str, value: Any) -> None:
    record = copy.deepcopy(records[kind])
    at, last = kit.parent(record, path)
    assert at[last] != value
    at[last] = value
    with pytest.raises(InputError, match="is not the record of such a test"):
        READ[kind](record)


def read(path: str) -> None:
    from budge.cli.report import _record

    ablation_from(_record(Path(path)))


@pytest.mark.parametrize(("head", "body", "times"), [("[", "1,", 20_000_000), ('{"a":', "[", 50_000), ('{"ranking":[', '{"":1},', 190_000), ("[]", "", 0)])
def test_hostile_records_are_refused_within_limits(tmp_path: Path, head: str, body: str, times: int) -> None:
    (tmp_path / "a.json").write_text(head + body * times + ("1]" if body == "1," else ""))
    outcome = attempt(read, str(tmp_path / "a.json"))
    assert outcome.safe, str(outcome)
    assert outcome.kind == "refused", str(outcome)
