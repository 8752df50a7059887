"""Saved runs: they come back whole, are replayed to the last count, and what was changed is found."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_kit import ROUTES, approve, loans

import budge
from budge.errors import InputError, OutputExistsError, StorageError


@pytest.mark.parametrize("route", ROUTES)
def test_saved_runs_come_back_whole_and_are_replayed(tmp_path: Path, route: str) -> None:
    X, im = loans()
    X.index = pd.Index([f"id{i}" for i in range(len(X))], name="who")
    result = budge.audit(approve, X, im, target=1, seed=3, **ROUTES[route])
    result.save(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names[0] == "audit.json"
    assert re.fullmatch(r"counts-[0-9a-f]{16}\.npz", *names[1:])
    back = budge.Audit.load(tmp_path / "run")
    pd.testing.assert_frame_equal(back.table, result.table, check_exact=True)
    assert str(back) == str(result)
    assert back.design.digest == result.design.digest
    assert back.info["spec_digest"] == im.digest
    for column, _ in result.design.groups:  # in the order that the table of people declares
        pd.testing.assert_frame_equal(back.by(column), result.by(column), check_exact=True)
    for label in result.table.index:
        assert back.change(label).astype(str).equals(result.change(label).astype(str))
    again = back.replay(approve, X)
    pd.testing.assert_frame_equal(again.table, result.table, check_exact=True)
    assert again.info["when"] == result.info["when"]
    assert again.info["replayed"] >= result.info["when"]
    assert "replayed" not in result.info


def test_changes_on_disk_and_other_runs_are_found(tmp_path: Path) -> None:
    X, im = loans()
    result = budge.audit(approve, X, im, target=1, seed=3, population="all")
    result.save(tmp_path / "run")
    back = budge.Audit.load(tmp_path / "run")
    with pytest.raises(OutputExistsError):
        result.save(tmp_path / "run")
    with pytest.raises(InputError, match="differs"):
        back.replay(lambda t: 1 - approve(t), X)
    asked = {"rows": 0}

    def counting(table: pd.DataFrame) -> np.ndarray:
        asked["rows"] += len(table)
        return approve(table)

    for other in ({"X": X.iloc[1:]}, {"X": X.assign(age=X["age"] + 1)}, {"X": X, "im": im.freeze("home")}):
        with pytest.raises(InputError, match="digest differs"):  # before anything is asked
            back.replay(counting, **other)
    assert asked["rows"] == 0
    for name in os.listdir(tmp_path / "run"):
        path = tmp_path / "run" / name
        whole = path.read_bytes()
        for broken in (whole[: len(whole) // 2], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], b""):
            path.write_bytes(broken)
            with pytest.raises(StorageError, match=name):
                budge.Audit.load(tmp_path / "run")
        path.unlink()
        with pytest.raises(StorageError, match=name):
            budge.Audit.load(tmp_path / "run")
        path.write_bytes(whole)
    assert budge.Audit.load(tmp_path / "run").table.equals(back.table)
    outer = json.loads((tmp_path / "run" / "audit.json").read_text())
    old = json.dumps(json.loads(outer["record"]) | {"budge": 1})
    (tmp_path / "run" / "audit.json").write_text(json.dumps({"digest": blake2b(old.encode(), digest_size=16).hexdigest(), "record": old}))
    with pytest.raises(StorageError, match="another version"):
        budge.Audit.load(tmp_path / "run")


def test_models_that_disagree_about_who_a_person_is_are_refused(tmp_path: Path) -> None:
    X, im = loans()
    X = X.assign(town=np.where(X.index < 6, "n", None))
    both = budge.audit({"yes": approve, "no": lambda t: 0 * approve(t)}, X, im, target=1, groups="town")
    assert 0 < len(both.rows["yes"].place) < len(both.rows["no"].place)
    both.save(tmp_path / "run")
    assert budge.Audit.load(tmp_path / "run").table.equals(both.table)
    own = both.rows["yes"]
    index = own.index.to_numpy().copy()
    index[0] += 100
    named = pd.Index(index)
    for changed, what in (
        (replace(own, index=named, groups=own.groups.set_axis(named)), "labels"), (replace(own, groups=own.groups.assign(town="s")), "groups by town"),
        (replace(own, units=own.units[::-1].copy()), "units"),
    ):  # fmt: skip
        forged = replace(both, rows={**both.rows, "yes": changed})
        forged.save(tmp_path / what)
        with pytest.raises(StorageError, match=f"{what} of one person differ"):
            budge.Audit.load(tmp_path / what)
