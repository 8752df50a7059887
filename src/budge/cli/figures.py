"""The option ``--figure`` of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["check_figure", "write_figure"]


def check_figure(path: Path | None, overwrite: bool) -> None:
    """Refuse a figure that cannot be written before any work is done."""
    if path is not None:
        from budge.report.figures.saving import check_path

        check_path(path, overwrite=overwrite, where="--figure")


def write_figure(path: Path, figure: Any) -> None:
    """Write the figure whole or not at all."""
    from budge.report.figures.saving import save

    save(figure, path, overwrite=True, where="--figure")
