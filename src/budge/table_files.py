"""Write tables as files for other programs: CSV, Parquet, LaTeX and Excel workbooks, with cells that none of these runs or misreads."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import pandas as pd

from budge.errors import InputError, MissingDependencyError, OutputExistsError, printable
from budge.files import whole_file

__all__ = ["check_rows_path", "latex", "latex_table", "tame", "write_rows", "write_workbook"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # beginnings of a text that a spreadsheet may run
MOST_ROWS, MOST_TEXT, MOST_DIGITS = 1_048_575, 32_767, 10**15  # of a sheet below its head, of a cell, and of a whole number that Excel keeps
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "−": r"$-$", "≤": r"$\leq$", "≥": r"$\geq$", "·": r"$\cdot$", "→": r"$\rightarrow$", "∞": r"$\infty$", "ρ": r"$\rho$", "\n": " ",
}  # fmt: skip


def latex(text: str) -> str:
    """Return a text for LaTeX: nothing in it is a command.

    Examples
    --------
    >>> latex("income_2 ≥ 50 %")
    'income\\\\_2 $\\\\geq$ 50 \\\\%'
    """
    return "".join(_LATEX.get(c, c) for c in printable(text))


def latex_table(rows: pd.DataFrame) -> str:
    """Return a table of texts and numbers in LaTeX (with booktabs): numbers to the right, a dash where one is missing."""
    right = [pd.api.types.is_numeric_dtype(rows[c].dtype) for c in rows.columns]
    lines = [rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in right)}}}", r"\toprule"]
    lines += [" & ".join(latex(str(c)) for c in rows.columns) + r" \\", r"\midrule"]
    for row in rows.itertuples(index=False, name=None):
        lines.append(" & ".join("--" if pd.isna(value) else latex(_figure(value)) for value in row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _figure(value: Any) -> str:
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float | np.floating) else str(value)


def tame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a CSV file in which a text that a spreadsheet would run as a formula, or that would end its line, is shown as a text.

    Examples
    --------
    >>> tame(pd.DataFrame({"=name": ["=1+1", "Ann"], "rho": [-0.5, 1.0]})).to_csv(index=False).splitlines()
    ["'=name,rho", "'=1+1,-0.5", 'Ann,1.0']
    """

    def quoted(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        return f"'{printable(cell)}" if cell.startswith(FORMULA) else printable(cell)  # pandas does not quote a lone carriage return

    texts = {c: rows[c].map(quoted) for c in rows.columns if not pd.api.types.is_numeric_dtype(rows[c].dtype)}
    return rows.assign(**texts).rename(columns=quoted)


def check_rows_path(path: Path) -> None:
    """Raise an error for a file that `write_rows` cannot write."""
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise InputError("rows are written as .csv or .parquet", where=str(path), got=path.suffix)


def write_rows(
    parts: Iterable[pd.DataFrame], path: str | Path, *, overwrite: bool = False, raw: bool = False, progress: Callable[[int], None] | None = None
) -> int:
    """Write the parts of a table to one CSV or Parquet file, whole or not at all; return how many rows there are.

    With `raw`, texts of a CSV file are written as they are, for programs that read them again.
    """
    place = Path(path)
    check_rows_path(place)
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    kind, total, writer = place.suffix.lower(), 0, None
    with whole_file(place, overwrite=overwrite) as file:
        try:
            for k, part in enumerate(parts):
                if kind == ".csv":
                    (part if raw else tame(part)).to_csv(file, header=not k, index=False)
                else:
                    writer = _append(part, file, writer, place)
                total += len(part)
                if progress is not None:
                    progress(total)
        finally:
            if writer is not None:
                writer.close()
    return total


def _append(part: pd.DataFrame, file: BinaryIO, writer: Any, place: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        remedy = "pip install 'budge[parquet]', or write .csv"
        raise MissingDependencyError("Parquet needs pyarrow", where=str(place), remedy=remedy) from None
    try:
        rows = pa.Table.from_pandas(part, preserve_index=False)
        if writer is None:  # a column that has no value yet may have any later
            writer = pq.ParquetWriter(file, pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in rows.schema]))
        writer.write_table(rows.cast(writer.schema))
    except (pa.ArrowException, ValueError) as error:
        what = f"a column of a Parquet file has values of one type: {error.args[0] if error.args else error}"
        raise InputError(what, where=str(place), remedy="write .csv, or make the column's values texts") from None
    return writer


# -- Excel ----------------------------------------------------------------------------------------------------------------

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
#: Styles: 0 plain, 1 a text that stays one when it is edited, 2 the head.
_STYLES = (
    f'{_HEAD}<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/>'
    '<name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" '
    'fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/><xf numFmtId="0" '
    'fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/><xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


def write_workbook(sheets: Mapping[str, Iterable[pd.DataFrame]], path: str | Path, *, overwrite: bool = False) -> int:
    """Write an Excel workbook, one sheet per table, from the tables' parts, whole or not at all; return how many rows there are.

    Texts are written as texts: no cell is a formula. Whole numbers of more than 15 digits are texts, too, since Excel would round them.
    """
    place, total = Path(path), 0
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = "".join(f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{kind}.worksheet+xml"/>' for k in range(1, len(sheets) + 1))
    types = (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/>{parts}</Types>'
    )
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{k}" r:id="rId{k}"/>' for k, name in enumerate(sheets, 1))
    book = f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
    links = [(f"{_OFFICE}/worksheet", f"worksheets/sheet{k}.xml") for k in range(1, len(sheets) + 1)]
    with whole_file(place, overwrite=overwrite) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("[Content_Types].xml", types)
        pack.writestr("_rels/.rels", _links([(f"{_OFFICE}/officeDocument", "xl/workbook.xml")]))
        pack.writestr("xl/workbook.xml", book)
        pack.writestr("xl/_rels/workbook.xml.rels", _links([*links, (f"{_OFFICE}/styles", "styles.xml")]))
        pack.writestr("xl/styles.xml", _STYLES)
        for k, (name, frames) in enumerate(sheets.items(), 1):
            with pack.open(f"xl/worksheets/sheet{k}.xml", "w", force_zip64=True) as sheet:
                total += _write_sheet(sheet, frames, where=f"{place}, sheet {name}")
    return total


def _links(targets: Sequence[tuple[str, str]]) -> str:
    found = "".join(f'<Relationship Id="rId{k}" Type="{kind}" Target="{target}"/>' for k, (kind, target) in enumerate(targets, 1))
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{found}</Relationships>'


def _write_sheet(file: IO[bytes], frames: Iterable[pd.DataFrame], *, where: str) -> int:
    """Write the rows of a sheet below a head that stays in sight; return how many there are."""
    total = 0
    pane = '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    file.write(f'{_HEAD}<worksheet xmlns="{_MAIN}">{pane}<sheetData>'.encode())
    for k, frame in enumerate(frames):
        if not k:
            file.write(f"<row>{''.join(_text(str(c), 2) for c in frame.columns)}</row>".encode())
        total += len(frame)
        if total > MOST_ROWS:
            raise InputError(f"a sheet has at most {MOST_ROWS:,} rows", where=where, remedy="write .parquet or .csv")
        for row in frame.itertuples(index=False, name=None):
            file.write(f"<row>{''.join(map(_cell, row))}</row>".encode())
    file.write(b"</sheetData></worksheet>")
    return total


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | np.integer) and abs(int(value)) < MOST_DIGITS:
        return f"<c><v>{int(value)}</v></c>"
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return f"<c><v>{float(value)!r}</v></c>"
    return "<c/>" if pd.isna(value) else _text(str(value))


def _text(text: str, style: int = 0) -> str:
    plain = printable(text)
    plain = plain if len(plain) <= MOST_TEXT else f"{plain[: MOST_TEXT - 1]}…"
    plain = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", plain)  # which Excel would read as the code of a character
    kind = 1 if not style and text.startswith(FORMULA) else style
    return f'<c t="inlineStr" s="{kind}"><is><t xml:space="preserve">{escape(plain, quote=False)}</t></is></c>'
