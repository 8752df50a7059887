"""`load_model`: model files, of formats that hold data and no code; others only if they are trusted."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from budge.errors import MissingDependencyError, ModelError, Problem, StorageError
from budge.files import near_file
from budge.models.lgbm_text import check_text
from budge.models.limits import JSON_PARTS, SCHEMA_BYTES, BeyondLimitError, check_archive, check_parts, check_size, read_bytes
from budge.models.mlflow_folder import load_python_model, model_file
from budge.models.onnx_model import OnnxModel
from budge.models.sniff import Format, hidden, sniff
from budge.models.xgb_file import check_xgboost

__all__ = ["load_model"]

SUFFIXES: dict[str, tuple[Format, ...]] = {
    ".onnx": ("onnx",),
    ".skops": ("skops",),
    ".json": ("xgboost-json",),
    ".ubj": ("xgboost-ubj",),
    ".txt": ("lightgbm",),
    ".lgb": ("lightgbm",),
    ".xgb": ("xgboost-json", "xgboost-ubj"),
}
RUNS_CODE: dict[Format, str] = {
    "pickle": "a pickle",
    "compressed": "a compressed pickle (joblib)",
    "torch": "a torch archive, which holds a pickle or a program",
    "npz-objects": "NumPy arrays of objects, which are pickles",
    "npy": "a NumPy array",
    "zip": "an archive of an unknown kind",
}
CODE_SUFFIXES = {".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".npz", ".npy", ".sav", ".dill", ".cloudpickle"}
DEEPEST = 400  #: levels of a skops schema
#: scikit-learn's estimators that hand the numbers of a file to libsvm, which trusts them: wrong ones end the process.
LIBSVM = ("NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR")
#: Types that skops does not know to be safe and that hold plain values, by the loader that skops gives them. None hands numbers to native code
#: that would follow them out of its memory, as trees of scikit-learn (`sklearn.tree._tree.Tree`), neighbours and boosters do.
KNOWN = {
    "numpy.dtype": "DTypeNode",
    "builtins.object": "TypeNode",  # these four are named by `make_column_selector(dtype_include=object)` and the like
    "numpy.number": "TypeNode",
    "numpy.integer": "TypeNode",
    "numpy.floating": "TypeNode",
    "collections.OrderedDict": "TypeNode",
    "sklearn.calibration._CalibratedClassifier": "ObjectNode",
    "sklearn.calibration._SigmoidCalibration": "ObjectNode",
    "sklearn.compose._column_transformer.make_column_selector": "ObjectNode",
    "sklearn.feature_selection._univariate_selection.chi2": "FunctionNode",
    "sklearn.feature_selection._univariate_selection.f_classif": "FunctionNode",
    "sklearn.feature_selection._univariate_selection.f_regression": "FunctionNode",
    "sklearn.metrics._scorer._PassthroughScorer": "ObjectNode",
    "sklearn.model_selection._split.KFold": "ObjectNode",
    "sklearn.model_selection._split.StratifiedKFold": "ObjectNode",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": "ObjectNode",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer": "ObjectNode",
    "sklearn.utils._bunch.Bunch": "DictNode",
}
SAFE = "save it as ONNX or skops, or in the engine's own format (XGBoost .json or .ubj, LightGBM .txt)"


def load_model(path: str | Path, *, trust: bool | Collection[str] = False) -> Any:
    """Load a model file, by its content and its suffix together.

    Parameters
    ----------
    path
        ``.onnx``, ``.skops``, XGBoost ``.json`` or ``.ubj``, LightGBM ``.txt``; or a folder that MLflow has saved, which holds such a file.
    trust
        True also loads files that can run code (pickle, joblib, torch, Python models of MLflow). A list of names trusts those types in a skops file.

    Raises
    ------
    ModelError
        If loading would run code, the content is not what the suffix says, or an ONNX file names data outside its folder.

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.pkl"
    ...     _ = file.write_bytes(pickle.dumps({}))
    ...     load_model(file)
    Traceback (most recent call last):
    budge.errors.ModelError: ...model.pkl: loading would run code: the file is a pickle; save it as ...
    """
    path = Path(path)
    if not os.path.lexists(path):
        raise StorageError("there is no such model file", where=str(path), remedy=near_file(path))
    if path.is_dir():
        file = model_file(path)
        return load_python_model(path, trusted=trust is True) if file is None else load_model(file, trust=trust)
    check_size(path)
    check_archive(path)
    form = sniff(path)
    suffix = path.suffix.lower()
    beside = hidden(path, form) if form not in ("empty", "unknown") else ""
    trusted = trust is True
    if form == "empty":
        raise ModelError("the file is empty", where=str(path))
    if beside and not trusted:
        raise ModelError(f"the file is two in one: {beside}", where=str(path), remedy=f"{SAFE}; trust=True (--trust all) loads it all the same")
    if form in RUNS_CODE:
        if not trusted:
            what = f"loading would run code: the file is {RUNS_CODE[form]}{_renamed(suffix)}"
            raise ModelError(what, where=str(path), remedy=f"{SAFE}; or trust=True (--trust all), if you trust whoever made it")
        return _trusted(path, form)
    if form == "npz":
        raise ModelError("the file holds arrays, not a model", where=str(path), remedy=SAFE)
    if form == "unknown" or form not in SUFFIXES.get(suffix, (form,) if not suffix else ()):
        if form == "unknown" and trusted and suffix in CODE_SUFFIXES:
            return _trusted(path, "pickle")
        expected = SUFFIXES.get(suffix)
        what = f"the content is {'of no known format' if form == 'unknown' else form}"
        what += f", the suffix {suffix!r} says {' or '.join(expected) if expected else 'something else'}"
        raise ModelError(what, where=str(path), remedy="rename it to its true suffix" if form != "unknown" else SAFE)
    return _safe(path, form, trust)


def _renamed(suffix: str) -> str:
    return "" if suffix in CODE_SUFFIXES or not suffix else f", though it is named {suffix!r}"


def _safe(path: Path, form: Format, trust: bool | Collection[str]) -> Any:
    if form == "onnx":
        model = OnnxModel.read(path)
        model.check()
        return model
    if form == "skops":
        return _skops(path, trust)
    package = "lightgbm" if form == "lightgbm" else "xgboost"
    content = read_bytes(path)
    if form == "lightgbm":
        content = content.replace(b"\r\n", b"\n")  # the sizes of trees that the file states count one byte per end of a line
        check_text(content, where=str(path))
    else:
        content = content.strip() if form == "xgboost-json" else content
        check_xgboost(content, where=str(path))
    try:
        if form == "lightgbm":
            import lightgbm

            return lightgbm.Booster(model_str=content.decode())
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(bytearray(content))  # the bytes that were checked, whatever becomes of the file
        return booster
    except ImportError as error:
        raise _missing(package) from error
    except Exception as error:
        raise ModelError(f"{package} cannot read the file: {_first_line(error)}", where=str(path)) from error


def _skops(path: Path, trust: bool | Collection[str]) -> Any:
    known, followed = _check_schema(path)  # before skops is imported, which is costly
    try:
        import skops.io
    except ImportError as error:
        raise _missing("skops") from error
    try:
        untrusted = skops.io.get_untrusted_types(file=str(path))
    except Exception as error:
        raise ModelError(f"skops cannot read the file: {error}", where=str(path)) from error
    unknown = {*untrusted, *followed} - known
    refused = set() if trust is True else unknown - set(trust or ())
    if refused:
        types = sorted(refused)
        remedy = f"look at them, then load_model(path, trust={types!r}), or {' '.join(f'--trust {name}' for name in types)} on the command line"
        raise ModelError([Problem(str(path), "the file holds types that are not known to be safe", got=types, remedy=remedy)])
    try:
        return skops.io.load(str(path), trusted=sorted(set(untrusted) - followed))
    except Exception as error:
        raise ModelError(f"skops cannot load the file: {error}", where=str(path)) from error


def _check_schema(path: Path) -> tuple[set[str], set[str]]:
    """Raise unless the archive's schema is JSON of the form that skops reads; return the types of `KNOWN` in it, and those whose library follows any number."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("schema.json").file_size > SCHEMA_BYTES:
                raise BeyondLimitError(f"its schema has more than {SCHEMA_BYTES:,} bytes (SCHEMA_BYTES)")
            text = archive.read("schema.json")
        check_parts(text)
        if text.count(b",") > 4 * JSON_PARTS:
            raise BeyondLimitError(f"its schema has more than {4 * JSON_PARTS:,} entries")
        schema = json.loads(text)
        if not isinstance(schema, dict) or type(schema.get("protocol")) is not int:
            raise ValueError("its schema states no protocol")
        level: list[Any] = [schema]
        loaders: dict[str, set[str | None]] = {}
        for _ in range(DEEPEST):
            for part in level:
                if isinstance(part, dict) and "__class__" in part:
                    loaders.setdefault(f"{part.get('__module__')}.{part['__class__']}", set()).add(str(part.get("__loader__")))
            inner = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
            level = [part for part in inner if isinstance(part, dict | list)]
            if any(isinstance(part, dict) and "__loader__" in part and not {"__class__", "__module__"} <= part.keys() for part in level):
                raise ValueError("a part of its schema has no type")
            if not level:
                known = {name for name, found in loaders.items() if found == {KNOWN.get(name)}}
                return known, {name for name in loaders if name.rpartition(".")[2] in LIBSVM}
        raise ValueError(f"its schema nests more than {DEEPEST} levels deep")
    except BeyondLimitError as error:
        raise ModelError(f"the skops file is too large: {error}", where=str(path), remedy=error.remedy) from error
    except (ValueError, KeyError, RecursionError, NotImplementedError, RuntimeError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise ModelError(f"the skops file is cut off or broken: {error}", where=str(path), remedy="save the model again") from error


def _trusted(path: Path, form: Format) -> Any:
    if form in ("npz-objects", "npy"):
        raise ModelError("the file holds arrays, not a model", where=str(path), remedy=SAFE)
    try:
        if form == "torch":
            import torch

            return torch.load(path, map_location="cpu", weights_only=False)
        import joblib

        return joblib.load(path)
    except ImportError as error:
        raise _missing("torch" if form == "torch" else error.name or "joblib") from error
    except Exception as error:
        raise ModelError(f"the file cannot be loaded: {type(error).__name__}: {error}", where=str(path)) from error


def _first_line(error: Exception) -> str:
    """Return the first line of a library's message that is not blank, or the error's type."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _missing(package: str) -> MissingDependencyError:
    remedy = "pip install torch" if package == "torch" else "pip install 'budge[models]'"
    return MissingDependencyError(f"{package} is not installed", where="load_model", remedy=remedy)
