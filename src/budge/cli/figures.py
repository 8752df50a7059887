"""Figures as files: SVG, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from budge.errors import DesignError, OutputExistsError, StorageError

__all__ = ["check_figure", "write_figure"]


def check_figure(path: Path | None, overwrite: bool) -> None:
    """Refuse a figure that cannot be written before any work is done."""
    if path is None:
        return
    if path.suffix.lower() != ".svg":
        raise DesignError("the figure is an SVG file", where="--figure", got=str(path), remedy="give a name that ends in .svg")
    if path.exists() and not overwrite:
        raise OutputExistsError(
            "the figure exists", where="--figure", got=str(path), remedy="choose another name, or --overwrite"
        )


def write_figure(path: Path, text: str) -> None:
    """Write the figure whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageError(
            f"the figure cannot be written: {error.strerror}",
            where="--figure",
            got=str(path),
            remedy="choose a folder that can be written to",
        ) from error
