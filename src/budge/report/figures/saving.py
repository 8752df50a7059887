"""Figures as files: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from budge.errors import InputError, OutputExistsError, StorageError

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
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    kind = path.suffix.lower().removeprefix(".")
    shown = None
    if kind != "svg":
        from budge.report.figures.mpl import picture

        shown = picture(drawing)
    try:
        if shown is None:
            beside.write_text(drawing.svg(), encoding="utf-8")
        else:
            shown.savefig(
                beside,
                format=kind,
                dpi=200 if kind == "png" else "figure",
                metadata={"CreationDate": None} if kind == "pdf" else None,
            )
        beside.replace(path)
    except OSError as error:
        raise StorageError(
            f"the figure cannot be written: {error.strerror or error}",
            where=where,
            got=str(path),
            remedy="choose a folder that can be written to",
        ) from error
    finally:
        beside.unlink(missing_ok=True)
    return path
