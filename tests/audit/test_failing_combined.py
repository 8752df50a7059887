"""Failures in the middle of a block, and honest runs of any shape: what is kept can be read again and equals an honest run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Audit, Execution, Feature, InteractionModel
from budge.audit import loading, sources
from budge.errors import IncompleteError, InputError

pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")

IM = InteractionModel([Feature("income", "integer", bounds=(0, 9)), Feature("home", "binary", actionable=False)])
PEOPLE = pd.DataFrame({"income": np.arange(60) % 4, "home": 0})
LAWS: dict[str, dict[str, Any]] = {
    "listed": {}, "drawn": {"method": "sample", "n": 60}, "stopped": {"method": "sample", "sequential": True},
    "weighted": {"method": "sample", "n": 60, "proposal": {"income": {"weights": {k: 1 + k for k in range(10)}}}},
}  # fmt: skip


class Server:
    """A model that fails from one call to another."""

    def __init__(self, first: int = 0, last: int = 0) -> None:
        self.calls, self.down = 0, range(first, last)

    def __call__(self, table: pd.DataFrame) -> Any:
        self.calls += 1
        if self.calls in self.down:
            raise ConnectionError("the server is down")
        return (table["income"] > 4).astype(int)


@pytest.mark.parametrize("law", LAWS)
def test_a_model_that_goes_down_inside_a_block_leaves_a_journal_and_a_run_that_can_be_read(law: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK_ROWS", 100)  # several questions per block
    more = {"target": 1, "threshold": 0.3, **LAWS[law]}
    honest = budge.audit(Server(), PEOPLE, IM, **more)
    for first in (3, 4):
        model, how = Server(first, 10**6), Execution(journal=tmp_path / f"{first}", block_people=30, check=False)
        with pytest.raises(IncompleteError) as caught:
            budge.audit(model, PEOPLE, IM, execution=how, **more)
        partial = caught.value.result  # type: ignore[attr-defined]
        assert Audit.load(partial.save(tmp_path / f"saved{first}")).table.equals(partial.table)
        model.down = range(0)
        assert budge.audit(model, PEOPLE, IM, execution=how, **more).table.equals(honest.table)


def test_a_run_of_many_equal_people_whose_witnesses_change_much_can_be_read(tmp_path: Path) -> None:
    names = [f"number_of_open_credit_accounts_in_quarter_{j}" for j in range(12)]
    X = pd.DataFrame(0, index=np.arange(12_000), columns=names)
    im = InteractionModel([Feature(n, "binary") for n in names])
    result = budge.audit(lambda t: (t.sum(axis=1) >= 10).astype(int), X, im, target=1, method="sample", n=400)
    assert Audit.load(result.save(tmp_path / "run")).table.equals(result.table)


def test_a_run_that_could_not_be_read_again_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = budge.audit(Server(), PEOPLE.set_axis([f"{i}" * 500 for i in range(60)]), IM, target=1)
    monkeypatch.setattr(loading, "MOST_RECORD", 10_000)
    monkeypatch.setattr(loading, "RECORD_PER_ARRAYS", 1)
    with pytest.raises(InputError, match="larger than"):
        result.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_is_down_leaves_the_answers_of_another_one_alone_in_a_stream(tmp_path: Path) -> None:
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    models, how = {"up": Server(), "down": Server(25, 10**6)}, Execution(journal=tmp_path / "run", block_people=5)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(models, str(tmp_path / "people.parquet"), IM, target=1, execution=how)
    result = caught.value.result  # type: ignore[attr-defined]
    lost = result.table.groupby("model")["unresolved"].sum()
    assert lost["up"] == 0 < lost["down"]
    assert [note.where for note in result.notes] == ["down"]
    models["down"].down = range(0)
    again = budge.audit(models, str(tmp_path / "people.parquet"), IM, target=1, execution=how)
    assert again.table["unresolved"].sum() == 0


def test_groups_of_whole_numbers_some_of_which_are_missing_are_shown_alike_by_a_loaded_run(tmp_path: Path) -> None:
    result = budge.audit(Server(), PEOPLE.assign(area=pd.array([1, pd.NA, 3] * 20, "Int64")), IM, target=1, groups="area")
    assert str(Audit.load(result.save(tmp_path / "run"))) == str(result)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has it")
def test_texts_of_numpy_are_labels() -> None:
    result = budge.audit(lambda t: np.where(t["income"] > 4, "yes", "no").astype(np.dtypes.StringDType()), PEOPLE, IM, target="yes")
    assert (result.table["hits"] == 5).all()
