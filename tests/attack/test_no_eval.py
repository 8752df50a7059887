"""No source of budge evaluates texts or unpickles files, but in the places listed here, each with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "budge"
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {
    "eval",
    "query",
    "exec",
    "system",
    "popen",
    "execv",
    "execve",
    "spawnl",
}  #: of any object: DataFrame.eval and .query read expressions
UNPICKLING = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "torch", "marshal", "shelve"}
ALLOWED = {
    ("models/loading.py", "torch.load"): "files that the caller trusts by name (trust=True)",
    ("models/loading.py", "joblib.load"): "files that the caller trusts by name (trust=True)",
    ("models/torch_module.py", "self.module.eval"): "torch's switch to inference, which evaluates no text",
    (
        "audit/engines.py",
        "pickle.loads",
    ): "tasks that this process, or its parent, pickled itself; they never come from a file of the user",
    ("llm/runs/engine.py", "inspect.eval"): "Inspect AI's function that runs an evaluation task, which evaluates no text",
}


def suspicious(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of calls that run texts or unpickle, however they are imported."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNPICKLING:
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        ):
            yield node.value.lineno, "allow_pickle"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        root, _, last = called.rpartition(".")
        if (
            called in CALLS
            or (root and last in METHODS and root not in ("re",))
            or (
                last in ("load", "loads", "Unpickler", "read_pickle")
                and (root.partition(".")[0] in UNPICKLING or last in ("Unpickler", "read_pickle"))
            )
        ):
            yield node.lineno, called
        elif imported.get(called, "").endswith(("load", "loads", "Unpickler")):
            yield node.lineno, imported[called]
        elif (root == "yaml" and last in ("load", "load_all", "unsafe_load", "full_load")) or (
            last == "YAML"
            and not any(
                k.arg == "typ" and isinstance(k.value, ast.Constant) and k.value.value in ("safe", "rt") for k in node.keywords
            )
        ):
            yield node.lineno, called


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_source_evaluates_texts_or_unpickles(path: Path) -> None:
    name = str(path.relative_to(SOURCE)).replace("\\", "/")
    found = [
        (line, call) for line, call in suspicious(ast.parse(path.read_text(encoding="utf-8"))) if (name, call) not in ALLOWED
    ]
    assert not found, f"{name}: {found}"


def test_every_allowed_place_is_there() -> None:
    for name, call in ALLOWED:
        assert call in {found for _, found in suspicious(ast.parse((SOURCE / name).read_text(encoding="utf-8")))}, (name, call)


@pytest.mark.parametrize(
    "code",
    [
        "eval('1')",
        "exec(x)",
        "frame.query(q)",
        "frame.eval(q)",
        "pickle.load(f)",
        "from pickle import loads as read\nread(b)",
        "yaml.load(t)",
        "np.load(f, allow_pickle=True)",
        "os.system(c)",
        "pd.read_pickle(f)",
        "YAML(typ='unsafe')",
        "pickle.Unpickler(f)",
    ],
)
def test_each_kind_is_noticed(code: str) -> None:
    assert list(suspicious(ast.parse(code)))
