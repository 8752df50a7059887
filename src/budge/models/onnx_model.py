"""ONNX models through onnxruntime: one numeric tensor, or an input a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import MissingDependencyError, ModelError
from budge.models.digests import sha256
from budge.models.limits import ONNX_CELLS, ONNX_RUN_CELLS, ONNX_RUN_WORK, ONNX_WORK, check_size, read_bytes
from budge.models.onnx_graph import GraphFacts, read_graph
from budge.models.onnx_rules import Shape
from budge.models.onnx_sizes import REMEDY, check_operators, fits
from budge.models.reading import Ask
from budge.models.rows import Array, Rows, count, numbers

__all__ = ["OnnxEngine", "OnnxModel"]

DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}


@dataclass(frozen=True)
class OnnxModel:
    """The bytes of an ONNX model, judged before they are opened. It can be pickled; the session is made where it is used.

    Raises
    ------
    ModelError
        If the bytes are not ONNX, or name data outside the model's own folder.
    """

    content: bytes = field(repr=False)
    path: Path | None = None

    def __post_init__(self) -> None:
        self.files()

    @classmethod
    def read(cls, path: str | Path) -> OnnxModel:
        """Read a model from a file."""
        return cls(read_bytes(Path(path)), Path(path))

    @cached_property
    def facts(self) -> GraphFacts:
        """What the file says about itself."""
        return read_graph(self.content)

    def files(self) -> list[Path]:
        """The files of weights beside the model, all within its folder."""
        where = "onnx" if self.path is None else str(self.path)
        if self.path is None and self.facts.external:
            what = "the model keeps data in other files, and bytes have no folder"
            raise ModelError(what, where=where, got=list(self.facts.external), remedy="give the path of the file")
        folder = Path() if self.path is None else self.path.resolve().parent
        found, outside, absent = [], [], []
        for location in self.facts.external:
            try:
                file = (folder / location).resolve()
                there = file.is_file()
            except (OSError, ValueError, RuntimeError):  # no path at all: a NUL byte, a name too long, a circle of links
                outside.append(location)
                continue
            if not location or not file.is_relative_to(folder):
                outside.append(location)
            elif not there:
                absent.append(location)
            else:
                found.append(file)
        if outside:
            remedy = "a model may read files of its own folder only; save it with its data inside"
            raise ModelError("the model names data outside its folder", where=where, got=outside, remedy=remedy)
        if absent:
            raise ModelError("files of the model's data are missing", where=where, got=absent, remedy="put them beside the model")
        check_size(*([] if self.path is None else [self.path]), *dict.fromkeys(found))
        return found

    @cached_property
    def _bytes(self) -> int:
        return len(self.content) + sum(file.stat().st_size for file in dict.fromkeys(self.files()))

    def check(self) -> None:
        """Raise unless the model is known to take little memory and time for one row, before onnxruntime opens it.

        A session that the caller opened is used as it is.
        """
        where = "onnx" if self.path is None else str(self.path)
        check_operators(self.facts, where)
        if not fits(self.facts, {}, cells=ONNX_CELLS + 4 * self._bytes, work=ONNX_WORK + 64 * self._bytes, where=where):
            what = f"one row takes more than {ONNX_CELLS:,} numbers or {ONNX_WORK:,} multiplications beyond those of the file (ONNX_CELLS, ONNX_WORK)"
            raise ModelError(what, where=where, remedy=REMEDY)

    def rows_at_once(self, shapes: dict[str, Shape]) -> int:
        """Return how many rows go into one run, at most those of the shapes: all, or as many as the limits of a run let through."""
        rows = max(shape[0] for shape in shapes.values())
        where = "onnx" if self.path is None else str(self.path)
        while True:
            some = {name: (rows, *shape[1:]) for name, shape in shapes.items()}
            if fits(self.facts, some, cells=ONNX_RUN_CELLS + 4 * self._bytes, work=ONNX_RUN_WORK + 64 * self._bytes, where=where):
                return rows
            if rows <= 1:
                raise ModelError("one row of this width takes more memory or time than a run may", where=where, remedy=REMEDY)
            rows = (rows + 1) // 2

    @cached_property
    def session(self) -> Any:
        """The onnxruntime session."""
        self.check()
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingDependencyError("onnxruntime is not installed", remedy="pip install 'budge[models]'") from error
        source: str | bytes = str(self.path) if self.facts.external else self.content
        try:
            return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ModelError(f"onnxruntime cannot open the model: {error}", where=str(self.path or "onnx")) from error

    def __getstate__(self) -> dict[str, object]:
        return {"content": self.content, "path": self.path}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class OnnxEngine:
    """A session: its inputs are filled from columns, its outputs recognised by type."""

    model: OnnxModel
    session: Any = None  # a session of the caller's own, with options of its own

    @property
    def _session(self) -> Any:
        return self.model.session if self.session is None else self.session

    @property
    def name(self) -> str:
        """The file's name, if it has one."""
        return f"ONNX model {self.model.path.name}" if self.model.path else "ONNX model"

    @cached_property
    def _single(self) -> bool:
        inputs = self._session.get_inputs()
        return len(inputs) == 1 and (len(inputs[0].shape) != 2 or inputs[0].shape[1] != 1)

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the inputs, where there is one a column; a single tensor has no names."""
        return None if self._single else tuple(i.name for i in self._session.get_inputs())

    @cached_property
    def width(self) -> int | None:
        """The width of the single tensor."""
        shape = self._session.get_inputs()[0].shape
        return shape[1] if self._single and len(shape) == 2 and isinstance(shape[1], int) else None

    @cached_property
    def _outputs(self) -> dict[Ask, str]:
        """Which output answers what: integers or text are labels, maps and wide floats probabilities, other floats scores."""
        found: dict[Ask, str] = {}
        for output in self._session.get_outputs():
            kind, shape = output.type, output.shape or []
            if kind in ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)"):
                found.setdefault("label", output.name)
            elif kind.startswith("seq(map("):
                found.setdefault("probability", output.name)
            elif kind in ("tensor(float)", "tensor(double)", "tensor(float16)"):
                wide = "label" in found or (len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 1)
                found.setdefault("probability" if wide and self.model.facts.classes else "score", output.name)
        if not found:
            kinds = [output.type for output in self._session.get_outputs()]
            raise ModelError("no output holds labels or numbers", where=self.name, got=kinds)
        return found

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels that the file records."""
        return self.model.facts.classes

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        """What its outputs answer, labels first."""
        order: tuple[Ask, ...] = ("label", "probability", "score")
        return tuple(ask for ask in order if ask in self._outputs)

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the model says."""
        answer = self._run(self._outputs[ask], self._feed(rows))
        if isinstance(answer, list):  # a map a row, from label to probability
            keys = self.classes or tuple(answer[0])
            return np.array([[row[key] for key in keys] for row in answer])
        return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer

    def _run(self, output: str, feed: dict[str, Array]) -> Any:
        """Run the session, on as many rows at once as the model's sizes allow unless the session is the caller's own."""
        shapes = {name: array.shape for name, array in feed.items()}
        rows = max(shape[0] for shape in shapes.values())
        if self.session is not None or not rows:
            return _upright(self._session.run([output], feed)[0], rows)
        key = tuple(shapes.items())
        if key not in self._at_once:
            self._at_once[key] = self.model.rows_at_once(shapes)
        some = self._at_once[key]
        parts = [
            _upright(self._session.run([output], {name: array[start : start + some] for name, array in feed.items()})[0], min(some, rows - start))
            for start in range(0, rows, some)
        ]
        if len(parts) == 1:
            return parts[0]
        return [row for part in parts for row in part] if isinstance(parts[0], list) else np.concatenate(parts)

    @cached_property
    def _at_once(self) -> dict[object, int]:
        return {}

    def _feed(self, rows: Rows) -> dict[str, Array]:
        inputs = self._session.get_inputs()
        unknown = [i.type for i in inputs if i.type not in DTYPES]
        if unknown:
            raise ModelError("an input's type cannot be filled from a table", where=self.name, got=unknown)
        if not self._single and isinstance(rows, pd.DataFrame):
            return {i.name: _column(rows[name], DTYPES[i.type], i.shape) for i, name in zip(inputs, rows.columns)}
        dtype = DTYPES[inputs[0].type]
        if dtype == "object":
            text = rows.astype(str)
            return {inputs[0].name: np.asarray(text, dtype=object).reshape(count(rows), -1)}
        matrix = numbers(rows, dtype)
        if matrix is None:
            raise ModelError(f"the model takes a matrix of {dtype}, and a column does not hold numbers", where=self.name)
        return {inputs[0].name: matrix}

    def digest(self) -> str:
        """Digest of the file and of its files of weights."""
        return sha256(self.model.content, *(file.read_bytes() for file in self.model.files()))

    def alias(self, name: str) -> str:
        """skl2onnx's form of a name."""
        return name.replace(" ", "_")


def _upright(answer: Any, rows: int) -> Any:
    """Return the labels that skl2onnx makes one row of a matrix in some models one by one; anything else unchanged."""
    return answer.ravel() if isinstance(answer, np.ndarray) and rows > 1 and answer.shape == (1, rows) else answer


def _column(column: Any, dtype: str, shape: list[Any]) -> Array:
    text = dtype == "object"
    values = np.array([str(v) for v in column], dtype=object) if text else column.to_numpy().astype(dtype)
    return values.reshape(-1, 1) if len(shape) == 2 else values
