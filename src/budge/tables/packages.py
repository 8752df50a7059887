"""Optional packages that read tables, imported here and nowhere else: pyarrow, openpyxl, SQLAlchemy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from budge.errors import MissingDependencyError

__all__ = ["package"]


def package(name: str, what: str, extra: str, where: str = "X") -> Any:
    """Return a module of an optional package; where it is not installed the error names the extra that brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(what, where=where, remedy=f"pip install 'budge[{extra}]'") from error
