"""Tables of other people: names, labels, levels and numbers arrive as they stand, by every route, or the error names what is wrong."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from isolated import MEGABYTES, SECONDS, judged

import budge
from budge.audit.export import points_to_ask
from budge.cli import main
from budge.cli.shared import read_people
from budge.errors import BudgeError, DataError, InputError
from budge.frames import table
from budge.llm import Prompts
from budge.models import PredictionFile, point_keys
from budge.people import People
from cpu import within

CELLS = {
    "whole": ["1", "-3", "0", " 7", "007", "+5"],
    "large": ["9007199254740993", "9223372036854775807", "-9223372036854775808"],
    "unsigned": ["9223372036854775808", "18446744073709551615", "1", "-1"],
    "beyond": ["99999999999999999999999", "1", "-5"],
    "real": ["1.5", "-0.0", "1e300", "1e400", ".5", "inf"],
    "sign": ["NA", "nan", "None", "null", "", "<NA>"],
    "truth": ["True", "False", "TRUE", "false"],
    "text": ["a", 'b "q"', "x,y", "line\nbreak", "=cmd()", "\u202egnp", " lead", "1_000", "0x10", "1,5"],
    "empty": [""],
}


def told(read: Callable[[], pd.DataFrame]) -> Any:
    """Return names, types, values and labels, or None where the table is refused."""
    try:
        frame = read()
    except BudgeError:
        return None
    cells = [(c, str(frame[c].dtype), [(type(v), repr(v)) for v in frame[c].tolist()]) for c in frame.columns]
    return cells, [(type(v), repr(v)) for v in frame.index.tolist()]


def in_parts(path: Path, part: int, label: str | None = None) -> pd.DataFrame:
    people = People.of(str(path), part=part, id=label)
    return pd.concat([people.read(one) for one in people.parts])


def test_a_csv_file_read_in_parts_is_the_table_read_at_once(tmp_path: Path) -> None:
    rng, path, read = random.Random(20), tmp_path / "x.csv", 0
    for _ in range(20):
        kinds = [rng.sample(sorted(CELLS), rng.randint(1, 2)) for _ in range(rng.randint(2, 4))]
        names = [rng.choice(["", "c0"]), *(f"c{k}" for k in range(1, len(kinds)))]
        label = rng.choice([None, "c0"]) if names[0] else None
        rows = [[rng.choice(CELLS[rng.choice(kind)]) for kind in kinds] for _ in range(rng.randint(1, 8))]
        text = io.StringIO()
        csv.writer(text, lineterminator=rng.choice(["\n", "\r\n", "\r"])).writerows([names, *rows])
        path.write_bytes(text.getvalue().encode())
        at_once = told(lambda label=label: table(read_people(path, label)))  # type: ignore[misc]
        assert told(lambda label=label: in_parts(path, rng.randint(1, 3), label)) == at_once, (names, rows)  # type: ignore[misc]
        read += at_once is not None
    assert read > 8


@pytest.mark.parametrize("name", ["a\nz", "a\u2028z", "a\x85", "a\x0cz", "a\x1cz", 'a"z'])
def test_names_with_line_breaks_of_any_kind_are_the_same_by_every_route(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.csv"
    pd.DataFrame({name: [1, 2, 3], "b": [4, 5, 6]}).to_csv(path, index=False)
    assert read_people(path).columns.tolist() == in_parts(path, 2).columns.tolist() == [name, "b"]
    path.write_bytes(path.read_bytes().replace(b"b\n", f'"{name.replace(chr(34), chr(34) * 2)}"\n'.encode(), 1))
    with pytest.raises(DataError, match="column labels occur twice"):
        read_people(path)


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"a,b\n1,{'x' * 200_000}\n2,y\n")
    assert read_people(tmp_path / "x.csv")["b"].str.len().tolist() == in_parts(tmp_path / "x.csv", 1)["b"].str.len().tolist() == [200_000, 1]


def test_bytes_that_are_no_text_in_a_known_encoding_are_refused_by_every_route(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"n\x81\xe9,b\n1,2\n")
    for read in (read_people, lambda path: in_parts(path, 2)):
        with pytest.raises(DataError, match=r"not UTF-8 at byte 1 \(line 1\)"):
            read(tmp_path / "x.csv")


def test_labels_are_what_stands_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for name, cells in (("id", ["007", "7"]), ("id", ["1.10", "1.1"]), ("", ["007", "7"]), ("id", ["NA", "7"])):
        path.write_text("\n".join([f"{name},a", *(f"{cell},1" for cell in cells), ""]))
        assert read_people(path, name or None).index.tolist() == in_parts(path, 1, name or None).index.tolist() == cells
    path.write_text("id,a\n9007199254740993,1\n-8,1\n")
    assert read_people(path, "id").index.tolist() == in_parts(path, 1, "id").index.tolist() == [9007199254740993, -8]
    path.write_text(",a\nx,1\n,2\n")
    for read in (lambda: table(read_people(path)), lambda: in_parts(path, 1)):
        with pytest.raises(DataError, match=r"row [01]: somebody has no label"):
            read()


@pytest.mark.parametrize(
    ("levels", "column", "kind"),
    [
        ([1, 2.5], np.array([1]), "f"),
        ([1, 300], np.array([1], np.int8), "f"),
        ([1, 300], pd.array([1], "Int8"), "f"),
        ([True, 2], np.array([True]), "O"),
        (["a", 1], pd.array(["a"], "str"), "O"),
        ([1, "NA"], np.array([1]), "O"),
        ([1, 2], np.array([1], np.int8), "i"),
    ],
)
def test_levels_that_a_column_cannot_hold_reach_the_model_as_they_are(levels: list[Any], column: Any, kind: str) -> None:
    im = budge.InteractionModel([budge.Feature("g", "category", levels=levels)])
    points = im.enumerate(pd.DataFrame({"g": column})).points["g"]
    assert points.tolist() == levels
    assert points.dtype.kind == kind
    assert [isinstance(v, bool) for v in points.tolist()] == [isinstance(v, bool) for v in levels]


def test_whole_levels_beyond_2_to_the_53_are_told_apart() -> None:
    im = budge.InteractionModel([budge.Feature("g", "category", levels=[2**53, 2**53 + 1], actionable=False), budge.Feature("b", "binary")])
    assert im.coding.encode(pd.DataFrame({"g": [2**53, 2**53 + 1], "b": [0, 0]}))[:, 0].tolist() == [0.0, 1.0]


def test_a_column_called_key_neither_answers_for_points_nor_hides_their_keys(tmp_path: Path) -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 3))])
    X = pd.DataFrame({"key": ["p", "q"], "a": [0, 1]})
    with pytest.raises(InputError, match="column key"):
        next(points_to_ask(im, X, budge.Design(n=40)))
    known = PredictionFile.from_frame(pd.DataFrame({"key": ["p", "q"], "prediction": ["no", "yes"]}))  # people's names, not points
    with pytest.raises(BudgeError):
        budge.audit(known, X, im, target="yes", execution=budge.Execution(check=False))
    points = pd.DataFrame({"a": [0, 1]})
    pd.DataFrame({"key": point_keys(points), "prediction": ["NA", "yes"]}).to_csv(tmp_path / "p.tsv", index=False, sep="\t")
    assert PredictionFile.read(tmp_path / "p.tsv").predict(points).tolist() == ["NA", "yes"]
    (tmp_path / "p.csv").write_text("key,prediction,prediction\nx,no,yes\n")
    with pytest.raises(DataError, match="column labels occur twice"):
        PredictionFile.read(tmp_path / "p.csv")


@pytest.mark.parametrize(
    "text",
    [
        ",".join(f"c{k}" for k in range(100_000)) + "\n" + "x," * 99_999 + "x\n",
        ",".join(f"c{k}" for k in range(1_500_000)) + "\n1\n",  # longer than what is looked at: no name occurs twice
        "a,b\n" + "1," * 3_000_000 + "\n",
        "a" * 20_000_000 + "\n1\n",
        'a,b\n1,"' + "x\n" * 3_000_000,
    ],
    ids=["wide", "wider", "long line", "long name", "unclosed"],
)
def test_wide_and_long_tables_are_refused_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    for read in (read_people, lambda path: in_parts(path, 2)):
        with within(2):
            with pytest.raises(DataError) as refused:
                read(path)
            assert "occur twice" not in str(refused.value)


def test_a_wide_file_of_prompts_is_read_in_linear_time(tmp_path: Path) -> None:
    head, path = ",".join(["text", *(f"c{k}" for k in range(19_998))]), tmp_path / "prompts.csv"
    with within(3):
        path.write_text(f"{head}\none?{',' * 19_998}\n")
        assert Prompts.read(path)[0].text == "one?"
        path.write_text(f"{head},c7\n{',' * 19_999}\n")
        with pytest.raises(DataError, match="column labels occur twice"):
            Prompts.read(path)


def init(path: str) -> str:
    """Run ``budge init``; return its exit code and what it wrote to its errors."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(["init", path])
    return f"{code}: {errors.getvalue()[-300:]}"


def test_files_that_unfold_to_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    """A gigabyte of one line, packed in every way; the packed file is made block by block."""
    block = b"1,1\n" * 250_000
    for name, opened in (("x.csv.gz", gzip.open), ("x.csv.bz2", bz2.open), ("x.csv.xz", lzma.open)):
        with opened(tmp_path / name, "wb", **({"preset": 0} if name.endswith("xz") else {"compresslevel": 1})) as file:
            file.write(b"a,b\n")
            for _ in range(300):
                file.write(block)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("x.csv", "w", force_zip64=True) as inside:
        for _ in range(300):
            inside.write(block)
    (tmp_path / "x.jsonl").write_text("".join(f'{{"c{k}": 1}}\n' for k in range(19_000)))
    (tmp_path / "deep.json").write_text("[" * 10_000_000)
    with (tmp_path / "hole.xlsx").open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(3 << 30)
    paths = sorted(map(str, tmp_path.iterdir()))
    wrong = [
        f"{path}: {done} after {seconds:.2f} s of CPU and {most:.0f} MB: {said}"
        for path, (done, said, seconds, most) in zip(paths, judged(init, paths))
        if done != "done" or not said.startswith(("2:", "3:")) or seconds > SECONDS or most > MEGABYTES
    ]
    assert not wrong, "\n".join(wrong)


QUOTED = ['5" pipe', '"a\nb"', '"x,y"', '"q""q"', "a", '""', '"a"b"c', 'a""', '"l1\n""l2"', 'é"', '7"" x']


def test_quotation_marks_within_cells_mean_the_same_in_a_table_and_in_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "p.csv"
    for rows in (['5" pipe', '"a\nb"', '3" pipe', "c"], *(rng.choice(QUOTED, int(rng.integers(1, 7))).tolist() for _ in range(80))):
        monkeypatch.setattr("budge.people.lines.STEP", int(rng.choice([1, 2, 3, 7, 50, 1 << 22])))
        end = str(rng.choice(["\n", "\r\n", "\r"]))
        mark = "\ufeff" if rng.random() < 0.2 else ""
        path.write_bytes((mark + end.join(["n,t", *(f"{i},{cell}" for i, cell in enumerate(rows))])).encode())
        parts = [part.reader.read() for part in People.of(path, part=int(rng.integers(1, 4))).parts]
        assert repr(pd.concat(parts).values.tolist()) == repr(read_people(path).values.tolist()), rows
