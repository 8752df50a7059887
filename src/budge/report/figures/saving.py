"""Figures as files: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from budge.errors import InputError, OutputExistsError
from budge.files import whole_file, write_whole

__all__ = ["ENDINGS", "check_path", "save"]

ENDINGS = (".svg", ".png", ".pdf")


def check_path(path: str | Path, *, overwrite: bool, where: str = "path") -> Path:
    """Refuse a file that cannot be written, before any work is done."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(
            "a figure is an .svg, .png or .pdf file", where=where, got=str(path), remedy="give a name that ends in .svg"
        )
    if path.exists() and not overwrite:
        how = "--overwrite" if where.startswith("--") else "overwrite=True"
        raise OutputExistsError("the figure exists", where=where, got=str(path), remedy=f"choose another name, or {how}")
    return path


def save(drawing: Any, path: str | Path, *, overwrite: bool = False, where: str = "path") -> Path:
    """Write a drawing by the ending of its name: SVG by itself, PNG and PDF through matplotlib."""
    path = check_path(path, overwrite=overwrite, where=where)
    kind = path.suffix.lower().removeprefix(".")
    if kind == "svg":
        return write_whole(path, drawing.svg())
    from budge.report.figures.mpl import picture

    shown = picture(drawing)
    with whole_file(path) as file:
        shown.savefig(file, format=kind, dpi=200 if kind == "png" else "figure", metadata={"CreationDate": None} if kind == "pdf" else None)
    return path
