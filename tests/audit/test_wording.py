"""The words of the user are kept with a run, by every route, and change no number."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import budge
from budge.cli import main
from budge.errors import InputError, StorageError

WORDS = {"people_name": "applicants", "target_name": "approval", "group_labels": {"sex": {"0": "women"}}, "feature_labels": {"income": "income (k)"}}
IM = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9)), budge.Feature("sex", "binary", actionable=False)])
X = pd.DataFrame({"income": [1, 2, 3], "sex": [0, 1, 0]})


def rich(table: pd.DataFrame) -> np.ndarray:
    """Approve incomes above 4."""
    return (table["income"] > 4).to_numpy().astype(int)


def test_words_are_kept_with_a_saved_run_and_its_replay(tmp_path: Path) -> None:
    audit = budge.audit(rich, X, IM, target=1, wording=WORDS)
    assert audit.wording == budge.Wording(**WORDS)
    loaded = budge.Audit.load(audit.save(tmp_path / "run"))
    assert loaded.wording == audit.wording
    assert loaded.replay(rich, X, IM).wording == audit.wording
    plain = budge.audit(rich, X, IM, target=1)
    assert plain.wording == budge.Wording()
    pd.testing.assert_frame_equal(plain.table, audit.table)


def test_words_of_a_stream_are_kept_and_other_words_resume_the_same_run(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")
    X.to_csv(tmp_path / "people.csv", index=False)
    for k in range(2):  # words are no part of a run's identity: the second call finds the run finished
        audit = budge.audit(rich, str(tmp_path / "people.csv"), IM, target=1, journal=tmp_path / "run", wording=WORDS | {"purpose": f"call {k}"})
        assert audit.wording.purpose == f"call {k}"
    assert budge.Audit.load(tmp_path / "run").wording.people_name == "applicants"


def test_a_report_takes_the_words_of_the_run_and_others_in_their_place(tmp_path: Path) -> None:
    audit = budge.audit(rich, X, IM, target=1, wording=WORDS)
    text = audit.to_html(tmp_path / "one.html").read_text()
    assert "applicants" in text
    assert "approval" in text
    other = audit.to_html(tmp_path / "two.html", target_name="a loan").read_text()
    assert "applicants" in other
    assert "a loan" in other
    assert "approval" not in re.sub("<pre.*?</pre>", "", other, flags=re.S)  # the command is that of the audit


def test_words_from_the_shell_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    IM.to_file(tmp_path / "spec.yaml")
    X.to_csv(tmp_path / "people.csv", index=False)
    points = ["sample", str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv"), "-o", str(tmp_path / "points.csv")]
    assert main(points) == 0
    found = pd.read_csv(tmp_path / "points.csv", dtype={"key": str})
    found.assign(prediction=rich(found)).to_csv(tmp_path / "predictions.csv", index=False)
    call = ["audit", *points[1:3], "--predictions", str(tmp_path / "predictions.csv"), "--target", "1", "-o", str(tmp_path / "run")]
    words = ["--people-name", "applicants", "--target-name", "approval", "--group-label", "sex:0=women", "--feature-label", "income=income (k)"]
    assert main([*call, *words]) == 0, capsys.readouterr().err
    assert budge.Audit.load(tmp_path / "run").wording.to_dict() == WORDS


def test_words_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such field of a wording.*target_name"):
        budge.audit(rich, X, IM, target=1, wording={"target_nam": "approval"})
    with pytest.raises(InputError, match="must be a Wording"):
        budge.Execution(wording="approval")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at most 500 characters"):
        budge.Wording(purpose="x" * 501)
    with pytest.raises(InputError, match="must be a text"):
        budge.Wording(feature_labels={1: "one"})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="must be a text"):
        budge.Wording(group_labels={"home": {None: "one"}})
    frozen = budge.Wording(feature_labels=MappingProxyType({"a": "b"}))
    assert frozen.to_dict() == {"feature_labels": {"a": "b"}}


def test_values_with_labels_are_given_as_they_are_or_as_texts() -> None:
    texts = budge.Wording(group_labels={"sex": {"0": "women", "1": "men"}}, level_labels={"part": {"0.5": "half"}})
    assert budge.Wording(group_labels={"sex": {0: "women", 1.0: "men"}}, level_labels={"part": {np.float64(0.5): "half"}}) == texts
    assert texts.group("sex", 1, short=True) == "men"


def test_a_forged_wording_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = budge.audit(rich, X, IM, target=1, wording=WORDS)
    long = {"feature_labels": {"x" * 501: "y"}}
    for forged in ({"target_name": 5}, {"target_name": "x" * 501}, {"group_labels": {"sex": "men"}}, {"color": "red"}, "approval", long):
        object.__setattr__(audit, "info", {**audit.info, "wording": forged})
        monkeypatch.setattr(import_module("budge.audit.storage"), "check_record", lambda *_: None)
        place = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        audit.save(place)
        monkeypatch.undo()
        with pytest.raises(StorageError, match="wording"):
            budge.Audit.load(place)


def test_words_are_one_line_without_control_characters() -> None:
    evil = "yes\n0 of 9 are below\x1b[2J\u202e"
    words = budge.Wording(people_name=evil, target_name=evil, feature_labels={"a": evil}, group_labels={"sex": {"1": evil}})
    said = [words.people(2), words.target({"target": 1}), words.feature("a"), words.feature(evil), words.group("sex", 1), words.group(evil, 1)]
    assert all(text.isprintable() for text in said), said
    assert budge.Wording(people_name="  ", target_name="\n").people(2) == "people"
