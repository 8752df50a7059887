"""The house rules that a tool can check: import order, a docstring in every module, `__all__` as what is visible."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "budge"
MODULES = sorted(SOURCE.rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def public_definitions(tree: ast.Module) -> set[str]:
    """Functions and classes that a module defines at its top level under a public name."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def declared(tree: ast.Module) -> list[str] | None:
    """The names in ``__all__``, or None if the module has none (or builds it at run time)."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node.value, ast.List | ast.Tuple):
            return [ast.literal_eval(item) for item in node.value.elts if isinstance(item, ast.Constant)]
    return None


def shared_inside() -> set[tuple[str, str]]:
    """(module, name) of everything that one module of the package imports from another: helpers that are not for users."""
    found = set()
    for path in MODULES:
        package = dotted(path).split(".") if path.name == "__init__.py" else dotted(path).split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
                module = ".".join(filter(None, [base, node.module]))
                found |= {(module, alias.name) for alias in node.names}
    return found


SHARED_INSIDE = shared_inside()


def test_import_order_contracts_hold() -> None:
    pytest.importorskip("importlinter", reason="import-linter is in the `test` extra")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_order_contract_is_exhaustive_and_covers_house() -> None:
    """The contract itself cannot be emptied by accident."""
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    flow = next(contract for contract in contracts if contract["id"] == "flow")
    order = [layer.strip("()") for layer in flow["layers"]]
    assert flow["exhaustive"] is True
    house = ["features", "expressions", "constraints", "effects", "interaction", "spec", "reach"]
    house += ["models", "targets", "stats", "audit"]
    assert [name for name in reversed(order) if name in house] == house


DOORS = {"interaction.py": {"budge.reach", "budge.spec", "budge.describe"}, "spec/check.py": {"budge.reach"}}


@pytest.mark.parametrize("path", [p for p in MODULES if dotted(p).split(".")[1:2] not in (["report"], ["web"], ["cli"], ["testing"])], ids=dotted)
def test_results_call_for_figures_late(path: Path) -> None:
    """A result may show itself, but nothing that computes loads what draws."""
    early = imported_early(ast.parse(path.read_text(encoding="utf-8")))
    assert {name for name in early if name.split(".")[:2] == ["budge", "report"]} == set()


@pytest.mark.parametrize("file", DOORS)
def test_doors_to_the_right_open_late(file: str) -> None:
    """What the contract lets a module import from its right is imported inside functions only."""
    early = imported_early(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
    assert {name for name in early if ".".join(name.split(".")[:2]) in DOORS[file]} == set()


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_the_root_is_asked_for_its_version_only(path: Path) -> None:
    """``from budge import InteractionModel`` inside the package would go round the order (the command line stands outside)."""
    if dotted(path) == "budge" or dotted(path).startswith(("budge.cli", "budge.testing")):
        return
    rooms = {p.stem if p.is_file() else p.name for p in SOURCE.iterdir()}
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    asked = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "budge" for alias in node.names}
    asked |= {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "budge"
    }
    assert asked - rooms <= {"__version__"}


def imported_early(tree: ast.Module) -> set[str]:
    """Modules that are imported when this one is: at its top level, not in functions nor for type checkers only."""
    return {
        name
        for node in tree.body
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_every_module_says_what_it_holds(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{dotted(path)} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_all_is_what_is_defined(path: Path) -> None:
    """A public function or class is in ``__all__``, or another module uses it; all of ``__all__`` exists.

    Commands of the command line are no library, and nothing in a module with a leading underscore is for users.
    """
    name, tree = dotted(path), ast.parse(path.read_text(encoding="utf-8"))
    names, defined = declared(tree), public_definitions(tree)
    defined = {item for item in defined if (name, item) not in SHARED_INSIDE}
    if name.startswith("budge.cli") or "._" in name:
        pass
    elif names is None:
        assert not defined, f"{name} defines {sorted(defined)} and declares no __all__"
    else:
        hidden = defined - set(names)
        assert not hidden, f"{name}: visible but not in __all__: {sorted(hidden)}"
    for exported in names or ():
        assert exported in bound(tree), f"{name}: in __all__ but not there: {exported}"
    assert len(names or ()) == len(set(names or ())), f"{name}: __all__ repeats a name"


def bound(tree: ast.Module) -> set[str]:
    """Every name bound at a module's top level, in or under an ``if`` or ``try`` too; all names if it has ``__getattr__``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    if "__getattr__" in found:  # lazy names; the fresh interpreter below looks them up
        found |= set(declared(tree) or ())
    return found


FRESH = """
import json, types, budge
names = getattr(budge, "__all__", [])
values = {name: getattr(budge, name) for name in names}
visible = [n for n in dir(budge) if not n.startswith("_") and not isinstance(getattr(budge, n), types.ModuleType)]
print(json.dumps({"all": [n for n, v in values.items() if not isinstance(v, types.ModuleType) and not n.startswith("_")],
                  "visible": [n for n in visible if n != "annotations"]}))
"""


def test_the_package_shows_exactly_what_it_declares() -> None:
    """In a fresh interpreter ``dir(budge)`` has no public name that ``budge.__all__`` lacks, and the reverse."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    assert sorted(names["visible"]) == sorted(names["all"])


def test_modules_that_the_docs_name_are_there_after_one_import() -> None:
    """`budge.people.People.of(…)` of a page works after ``import budge``; what needs an import of its own is imported where it is shown."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((SOURCE.parents[1] / "docs").rglob("*.md"))]
    named = {name for page in pages for name in re.findall(r"\bbudge\.([a-z]\w*)\.[A-Za-z]", page) if f"import budge.{name}" not in page}
    there = named & {path.stem for path in SOURCE.iterdir()} - {"mlflow", "sklearn"}
    done = subprocess.run([sys.executable, "-c", f"import budge\nfor n in {sorted(there)}: getattr(budge, n)"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"people", "spec", "plan"} <= there


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_the_library_does_not_print(path: Path) -> None:
    if dotted(path).startswith("budge.cli"):
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    lines = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not lines, f"{dotted(path)} prints on lines {lines}; use logging"


def test_the_checks_can_fail() -> None:
    """The helpers above see a hidden name, a missing one and an absent ``__all__``."""
    tree = ast.parse("__all__ = ['here', 'gone']\ndef here(): ...\ndef hidden(): ...\ndef _own(): ...\n")
    assert public_definitions(tree) == {"here", "hidden"}
    assert declared(tree) == ["here", "gone"]
    assert "gone" not in bound(tree)
    assert declared(ast.parse("x = 1")) is None
    assert ("budge.errors", "nearest") in SHARED_INSIDE
    assert ("budge.datasets", "names") not in SHARED_INSIDE
    late = (
        "from budge.reach import a\nimport budge.spec\nif TYPE_CHECKING:\n    import budge.web\ndef f():\n    import budge.llm\n"
    )
    assert imported_early(ast.parse(late)) == {"budge.reach", "budge.spec"}
