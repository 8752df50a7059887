"""What the studies share: a result that writes itself as tables, figures and a page."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from budge.datasets import Dataset
from budge.errors import StorageError
from budge.interaction import InteractionModel

__all__ = ["Reason", "Study", "compared", "digest", "joined", "limits", "markdown", "model", "percent", "source", "spec_file"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Reason:
    """Why a number differs from the printed one: the reason, the run that tests it, and what that run gave."""

    text: str
    run: str
    result: str


def source(data: Dataset) -> str:
    """Return where a data set comes from and under which terms."""
    return f"{data.name}: {data.source} ({data.licence})"


def spec_file(name: str) -> Path:
    """Return the spec file of a study's interaction model, beside its program."""
    return HERE / f"{name}.yaml"


def model(name: str) -> InteractionModel:
    """Return the interaction model in the spec file of this name."""
    return InteractionModel.from_file(spec_file(name))


def limits(im: InteractionModel) -> str:
    """Return the bounds of all features that are not binary, as the paper's tables print them."""
    wide = [f for f in im.features if f.type in ("integer", "real") and f.bounds is not None]
    return ", ".join(f"{f.name} {f.bounds[0]:.10g} to {f.bounds[1]:.10g}" for f in wide if f.bounds is not None)


def joined(im: InteractionModel) -> str:
    """Return the parts that have several features, as the column of partitions in the paper's tables gives them."""
    return "; ".join(" + ".join(part) for part in im.partition if len(part) > 1)


def percent(share: float, digits: int = 1) -> str:
    """Return a share as the paper prints it: 0.123 is 12.3%."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f}%"


def compared(rows: Sequence[tuple[str, str, str, str]], reasons: Mapping[str, Reason] | None = None) -> pd.DataFrame:
    """Return the table in which every study ends: what, in the paper, here, and why they differ.

    With `reasons`, the last entry of a row is the name of one of them; a row whose numbers agree needs none.
    """
    if reasons is not None:
        rows = [(what, paper, here, "" if paper == here or not why else reasons[why].text) for what, paper, here, why in rows]
    return pd.DataFrame(rows, columns=["figure", "paper", "here", "why they differ"])


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown."""

    def cell(value: object) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text.replace("|", "\\|").replace("\n", " ")

    head = "| " + " | ".join(cell(c) for c in table.columns) + " |\n|" + "---|" * len(table.columns) + "\n"
    return head + "".join("| " + " | ".join(cell(v) for v in row) + " |\n" for row in table.itertuples(index=False))


def digest(page: str, files: Mapping[str, str]) -> str:
    """Return the SHA-256 of a page and the files beside it, which stands at the page's end: an edit by hand is found without a run."""
    found = hashlib.sha256(page.encode())
    for name in sorted(files):
        found.update(f"\n{name}\n{files[name]}".encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Study:
    """What a run found: the comparison with the paper, further tables, figures, and the numbers behind them."""

    name: str
    title: str
    about: str
    comparison: pd.DataFrame
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    data: Sequence[str] = ()
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    note: str = ""  # stands right above the table
    options: str = ""  # of the command that makes the page

    def __post_init__(self) -> None:
        if self.reasons:
            rows = [(r.text, r.run, r.result) for r in self.reasons.values()]
            table = pd.DataFrame(rows, columns=["reason", "tested by", "result"])
            object.__setattr__(self, "tables", {"reasons": table, **self.tables})

    def page(self) -> str:
        """Return the study as one page of Markdown."""
        small = (
            "This run was a quick one, on fewer rows or draws: its numbers are not those of the study.\n\n" if self.quick else ""
        )
        text = f"# {self.title}\n\n{self.about.strip()}\n\n{small}Run it: `budge study {self.name}{self.options} --out FOLDER`.\n\n"
        text += "".join(f"Data: {line}.\n\n" for line in self.data)
        text += "## Paper and here\n\n" + (f"{self.note}\n\n" if self.note else "") + markdown(self.comparison)
        for name in self.figures:
            text += f"\n## Figure: {name.replace('_', ' ')}\n\n![{name.replace('_', ' ')}]({self.name}_{name}.svg)\n"
        for name, table in self.tables.items():
            text += f"\n## Table: {name.replace('_', ' ')}\n\n{markdown(table)}"
        return text

    def files(self) -> dict[str, str]:
        """Return the page with its digest, every table as CSV and every figure as SVG, by the names of their files."""
        files = {f"{self.name}.csv": self.comparison.to_csv(index=False)}
        files |= {
            f"{self.name}_{name}.csv": table.to_csv(index=False, float_format="%.6g") for name, table in self.tables.items()
        }
        files |= {f"{self.name}_{name}.svg": text for name, text in self.figures.items()}
        page = self.page()
        return {f"{self.name}.md": f"{page}\n<!-- made by the command above; SHA-256 of this page and its files: {digest(page, files)} -->\n", **files}

    def write(self, folder: Path) -> list[Path]:
        """Write the page, every table as CSV and every figure as SVG; return the paths written."""
        files = self.files()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"the study cannot be written: {error.strerror}",
                where="out",
                got=str(folder),
                remedy="choose a folder that can be written to",
            ) from error
        return [folder / name for name in files]

    def to_dict(self) -> dict[str, Any]:
        """Return the record: where the data comes from, the comparison with its reasons, and the numbers behind it."""
        return {
            "study": self.name,
            "quick": self.quick,
            "data": list(self.data),
            "note": self.note,
            "reasons": [asdict(reason) for reason in self.reasons.values()],
            "comparison": self.comparison.to_dict("records"),
            "numbers": dict(self.numbers),
        }
