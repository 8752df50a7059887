"""The report as a file: what it says is what the audit says, it loads nothing, and no name in it becomes code."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_kit import Page, approve, audited, generous, loans, read

import budge
from budge import Feature, InteractionModel, constraints
from budge.errors import InputError, OutputExistsError, StorageError
from budge.report.document import embedded, render
from budge.report.people import EXTREME_WORDS

HOSTILE = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"><b onmouseover='x'>", "'; drop", "&lt;b&gt; & co", "\x1b[31mred\x1b[0m",
    "=HYPERLINK(\"http://x\")", "a\u2028b\u2029c", "{{ 7*7 }}", "{% raw %}", "<!--", "]]>", "\u202eevil", "javascript:alert(1)", "-->", "\\u003c",
]  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    audit = audited()
    path = tmp_path_factory.mktemp("report") / "report.html"
    return audit, audit.to_html(path, by=["home", "job"])


def test_it_is_sound_html_with_all_its_sections(report: tuple[Any, Path]) -> None:
    page = read(report[1])
    assert page.wrong == []
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {"answer", "who", "cases", "trust", "appendix", "everybody", "model"} <= set(ids)
    html = next(a for tag, a in page.tags if tag == "html")
    assert html["lang"] == "en"
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert links
    assert all(href and href.startswith("#") and href[1:] in ids for href in links)


def test_it_loads_nothing_and_runs_only_what_it_names(report: tuple[Any, Path]) -> None:
    page = read(report[1])
    assert not [tag for tag, a in page.tags if tag in ("link", "img", "iframe", "object", "embed", "base") or "src" in a or "srcset" in a]
    assert not [a for _, a in page.tags if any(name.startswith("on") or name == "style" for name in a)]
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    text = report[1].read_text(encoding="utf-8")
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    script = re.search(r"<script>(.*?)</script>", text, re.S)
    for body in (style, script):
        assert body is not None
        assert f"'sha256-{b64encode(sha256(body[1].encode()).digest()).decode()}'" in policy
    assert "url(" not in style[1]  # type: ignore[index]
    assert "@import" not in style[1]  # type: ignore[index]


def test_numbers_are_those_of_the_audit(report: tuple[Any, Path]) -> None:
    audit, path = report
    page = read(path)
    table = audit.table
    assert set(page.data) == {"table", "threshold", "main"}  # the script shows numbers and computes none
    held = page.data["table"]["models"][0]
    assert held["label"] == list(table.index)
    assert held["n"] == table["n"].tolist()
    assert held["hits"] == table["hits"].tolist()
    assert [held["verdict"]["names"][c] for c in held["verdict"]["codes"]] == table["verdict"].tolist()
    for column in ("rho", "low", "high"):
        found = np.array([np.nan if v is None else v for v in held[column]], dtype=float)
        np.testing.assert_allclose(found, table[column].to_numpy(), rtol=1e-5)
    for line in audit.summary().sentences():
        assert line in page.text
    shown = [row for row in page.rows if row and row[0] in set(table.index) and len(row) == 8]
    assert len(shown) == len(table)
    for row in shown:
        held_row = table.loc[row[0]]
        assert row[4] == f"{held_row['hits']:,} of {held_row['n']:,}"
        assert row[5].split() == f"{held_row['verdict']} {EXTREME_WORDS[held_row['extreme']]}".split()
        assert float(row[2]) == pytest.approx(held_row["rho"], rel=0.01, abs=1e-3)
    legend = {words: int(n) for n, words in re.findall(r"<b>(\d+)</b><span>(no way|almost none|more than)", path.read_text(encoding="utf-8"))}
    none = int((table["extreme"] == "none").sum())
    assert legend == {"no way": none, "almost none": int((table["verdict"] == "below").sum()) - none, "more than": int((table["verdict"] == "above").sum())}
    groups = audit.by("home")
    wide = [row for row in page.rows if len(row) == 6 and row[0] in ("home = 0", "home = 1")]
    assert {(row[0], int(row[3].split()[0]), int(row[4].split()[0])) for row in wide} == {
        (f"home = {g}", int(groups.loc[(g, "below"), "count"]), int(groups.loc[(g, "above"), "count"])) for g in (0, 1)
    }  # fmt: skip


def test_witnesses_are_real(report: tuple[Any, Path]) -> None:
    audit, path = report
    data = read(path).data["table"]
    held = data["models"][0]
    seen = 0
    for label, moves in zip(held["label"], held["moves"]):
        changed = audit.change(label)
        assert len(changed) == (len(moves) if moves else 0)
        for (f, a, b), (feature, old, new) in zip(moves or [], changed.to_numpy().tolist()):
            assert (data["features"][f], a, b) == (feature, str(old), str(new))
            seen += 1
    assert seen > 10


def test_it_says_what_was_asked_and_how_to_repeat_it(report: tuple[Any, Path]) -> None:
    audit, path = report
    text = read(path).text
    for words in (
        "the output is 1", "τ = 0.1", audit.info["spec_digest"], audit.info["data_digest"], audit.info["version"], audit.info["numpy"],
        "every feasible configuration", "no way at all", "The claims cover", "They do not say", "effort", "a full job pays", "budge audit SPEC.yaml PEOPLE.csv",
        "run.replay(model, X)", "Benjamini" if (audit.table["method"] == "sample").any() else "every reachable point", "declared before",
    ):  # fmt: skip
        assert words in " ".join(text.split()), words
    for name in ("income", "savings", "home", "job"):
        assert name in text


def test_several_models_and_stress_tests(tmp_path: Path) -> None:
    X, im = loans()
    audit = budge.audit({"strict <i>": approve, "generous": generous}, X, im, target=1, population="all")
    gone = budge.ablate(approve, X, im, target=1, population="all")
    wide = budge.sensitivity(approve, X, budge.stress.grid(im, {"features.income.max_increase": [1, 2]}), target=1, population="all")
    path = audit.to_html(tmp_path / "two.html", by="home", ablation=gone, sensitivity=wide)
    page = read(path)
    assert page.wrong == []
    assert "strict <i>" in page.text
    assert "generous" in page.text
    assert [m["name"] for m in page.data["table"]["models"]] == ["strict <i>", "generous"]
    assert "All relaxations" in page.text
    assert "Other interaction models" in page.text
    for name in (*gone.relaxations, *wide.members):
        assert name in page.text
    assert "Shaded: almost no way under one of the two alone. People whom both judge and about whom they disagree: " in page.text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_texts(name: str, tmp_path: Path) -> None:
    feature = Feature(name, "integer", bounds=(0, 3), max_increase=2)
    kind = Feature("kind", "category", levels=(name, "other"))
    im = InteractionModel([feature, kind], [constraints.LinearConstraint({name: 1}, "<=", 2, name=name)], name=name)
    X = pd.DataFrame({name: [0, 1, 2], "kind": [name, "other", name]}, index=[name, "b", "c"])
    audit = budge.audit({name: lambda t: (t[name] > 1).astype(int), "second": lambda t: (t[name] > 0).astype(int)}, X, im, target=1, population="all")
    page = Page(render(audit, by=["kind"], title=name))
    _check_hostile(page, name)


@given(name=st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=30).filter(lambda t: bool(t.strip())))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_name_is_a_text(name: str) -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 3)), Feature("kind", "category", levels=(name, name + "!"))], name=name)
    X = pd.DataFrame({"a": [0, 1], "kind": [name, name]}, index=pd.Index([name, "b" + name], tupleize_cols=False))
    audit = budge.audit(lambda t: (t["a"] > 1).astype(int), X, im, target=1)
    _check_hostile(Page(render(audit, by=["kind"], title=name)), name)


def _check_hostile(page: Page, name: str) -> None:
    from budge.errors import printable

    assert page.wrong == []
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [a for _, a in page.tags if any(key.startswith("on") for key in a)]
    assert not {tag for tag, _ in page.tags} & {"img", "b onmouseover", "iframe", "object"}
    assert all(a == {} or set(a) <= {"class"} for tag, a in page.tags if tag == "b")
    seen = printable(name).replace("\n", "\\n")
    flat = " ".join(" ".join(page.texts).split())
    assert " ".join(seen.split()) in flat
    assert "\x1b" not in flat
    assert str(page.data["table"]["models"][0]["label"][0]) == seen


def test_json_inside_html_cannot_end_the_element() -> None:
    text = embedded({"x": "</script><!--\u2028 & 'quotes'"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"x": "</script><!--\u2028 & 'quotes'"}
    with pytest.raises(ValueError, match="JSON"):
        embedded({"x": float("nan")})


def test_a_saved_run_is_enough(tmp_path: Path) -> None:
    audit = audited()
    audit.save(tmp_path / "run")
    loaded = budge.Audit.load(tmp_path / "run")
    assert loaded.change("p0").to_dict() == audit.change("p0").to_dict()
    assert loaded.notes == audit.notes
    page = read(loaded.to_html(tmp_path / "report.html"))
    ours = Page(render(audit))
    assert page.wrong == []
    assert page.data == ours.data


def test_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    audited().save(tmp_path / "run")
    path = tmp_path / "run" / "audit.json"
    path.write_text(path.read_text(encoding="utf-8").replace("below", "above"), encoding="utf-8")
    with pytest.raises(StorageError, match="changed"):
        budge.Audit.load(tmp_path / "run")


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = audited()
    path = tmp_path / "report.html"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputExistsError, match="exists"):
        audit.to_html(path)
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(OutputExistsError, match="folder"):
        audit.to_html(tmp_path, overwrite=True)
    with pytest.raises(StorageError, match="no such folder"):
        audit.to_html(tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match="no such column"):
        audit.to_html(tmp_path / "b.html", by=["hom"])
    import budge.report.document as document

    monkeypatch.setattr(document, "render", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        audit.to_html(path, overwrite=True)
    assert path.read_text(encoding="utf-8") == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_inputs_that_are_no_table(tmp_path: Path) -> None:
    """A drawer instead of an interaction model: no table of features, everything else."""

    class Noise:
        name = "noise"

        def draw(self, x: Any, n: int, rng: np.random.Generator) -> Any:
            return np.asarray(x) + rng.normal(size=(n, 3))

    audit = budge.audit(lambda batch: (np.asarray(batch).sum(axis=1) > 0).astype(int), np.zeros((4, 3)), Noise(), target=1, n=60)
    page = read(audit.to_html(tmp_path / "noise.html"))
    assert page.wrong == []
    assert "the caller's own procedure" in page.text


def test_statuses_are_shown_and_never_as_zero(tmp_path: Path) -> None:
    im = InteractionModel(
        [Feature("a", "integer", bounds=(0, 5), direction="increase"), Feature("b", "binary", actionable=False)],
        [constraints.IfThen("b == 1", "a >= 9", name="never")],
    )
    X = pd.DataFrame({"a": [1, 2, 5], "b": [0, 1, 0]})
    audit = budge.audit(lambda t: (t["a"] > 3).astype(int), X, im, target=1, population="all", design=budge.Design(on_invalid="keep"))
    assert audit.table["status"].tolist() == ["ok", "empty", "fixed"]
    page = read(audit.to_html(tmp_path / "r.html"))
    held = page.data["table"]["models"][0]
    assert held["rho"][1] is None
    assert "no action is feasible, not even to stay" in page.text


def test_thirty_thousand_people_fit(tmp_path: Path) -> None:
    X, im = loans()
    many = X.sample(30_000, replace=True, random_state=0).reset_index(drop=True)
    audit = budge.audit(approve, many, im, target=1, method="sample", n=100, population="all")
    path = audit.to_html(tmp_path / "many.html", by=["home", "job"])
    assert path.stat().st_size < 10_000_000
    page = read(path)
    assert len(page.data["table"]["models"][0]["label"]) == 30_000
    assert "the first 200 of 30,000 people" in " ".join(page.text.split())


def _luminance(colour: str) -> float:
    value = colour.lstrip("#")
    value = "".join(c * 2 for c in value) if len(value) == 3 else value
    parts = [int(value[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, two: str) -> float:
    a, b = sorted((_luminance(one), _luminance(two)))
    return (b + 0.05) / (a + 0.05)


def test_contrast_of_every_pair() -> None:
    """Text on its ground at 4.5 to 1 or more, in light, dark and print."""
    css = (files("budge.report") / "assets" / "look.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", block)) for block in re.findall(r"color-scheme: \w+;(.*?)\}", css, re.S)]
    assert len(schemes) == 4
    pairs = [(ink, ground) for ink in ("ink", "muted", "accent") for ground in ("paper", "panel")]
    pairs += [("below", "below-ground"), ("above", "above-ground"), ("open", "open-ground"), ("ink", "warn-ground"), ("on-accent", "accent")]
    pairs += [("below", "paper"), ("none", "paper"), ("above", "paper"), ("paper", "above"), ("warn", "warn-ground"), ("ink", "accent-ground")]
    for scheme in schemes:
        low = {pair: round(_contrast(scheme[pair[0]], scheme[pair[1]]), 2) for pair in pairs if _contrast(scheme[pair[0]], scheme[pair[1]]) < 4.5}
        assert not low
        assert min(_contrast(scheme[name], scheme["paper"]) for name in ("strong-line", "few")) >= 3  # edges of fields, marks of people


def test_tables_and_controls_have_names(report: tuple[Any, Path]) -> None:
    page = read(report[1])
    heads = [a for tag, a in page.tags if tag == "th"]
    assert all(a.get("scope") in ("col", "colgroup", "row") for a in heads)
    text = report[1].read_text(encoding="utf-8")
    for control in re.findall(r"<(?:input|select)[^>]*>", text):
        around = text[: text.index(control)]
        assert around.rfind("<label") > around.rfind("</label>"), control
    assert 'class="skip" href="#main"' in text
    assert 'id="count" role="status" aria-live="polite"' in text


def test_the_assets_ship() -> None:
    for name in ("look.css", "report.css", "report.js", "report.html", "llm.html", "head.html"):
        assert (files("budge.report") / "assets" / name).is_file()
