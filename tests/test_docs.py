"""Examples in documents run: every ```python block of the docs and the README, and the doctests of every module.

A page is one namespace, run in a directory of its own. Output is compared only in a block that uses ``>>>``.
A page that needs an extra or a data set that is not here skips aloud.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from budge.errors import MissingDependencyError, StorageError

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
MODULES = sorted((ROOT / "src" / "budge").rglob("*.py"))
FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<fence>`{3,})python[^\S\n]*\n(?P<body>.*?)^(?P=indent)(?P=fence)[^\S\n]*$", re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
#: Import names of the optional packages: absent ones skip, any other missing module is a failure.
OPTIONAL = {"sklearn", "skops", "xgboost", "lightgbm", "onnxruntime", "skl2onnx", "onnx", "torch", "pyarrow", "polars"}
OPTIONAL |= {"matplotlib", "statsmodels", "inspect_ai", "openai", "starlette", "uvicorn", "dask", "ray", "catboost", "pooch", "sqlalchemy", "openpyxl"}
OPTIONAL |= {"mlflow"}


def blocks(text: str) -> list[tuple[int, str]]:
    """The ```python blocks of a page, each with the line on which its code starts."""
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        found.append((line, textwrap.dedent(match["body"])))
    return found


def run_page(text: str, name: str) -> None:
    """Run all blocks of a page in one namespace; a block with prompts is a doctest, any other is plain code."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, code in blocks(text):
        if re.search(r"^\s*>>> ", code, re.M):
            test = doctest.DocTestParser().get_doctest(code, namespace, name, name, line)
            runner = doctest.DebugRunner(optionflags=FLAGS, verbose=False)
            try:
                runner.run(test, clear_globs=False)
            except doctest.UnexpectedException as surprise:
                raise surprise.exc_info[1] from None
            except doctest.DocTestFailure as failure:
                place = f"{name}:{line + failure.example.lineno + 1}"
                pytest.fail(f"{place}\n{failure.example.source}expected: {failure.example.want}got: {failure.got}", pytrace=False)
            namespace.update(test.globs)
        else:
            exec(compile("\n" * line + code, name, "exec"), namespace)


def skip_reason(error: BaseException) -> str | None:
    """Why a document cannot run here through no fault of its own, or None."""
    if isinstance(error, MissingDependencyError):
        return f"needs an extra: {error}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in OPTIONAL:
        return f"needs an extra: {error.name} is not installed"
    if isinstance(error, StorageError) and "BUDGE_DATA" in str(error) and "BUDGE_DATA" not in os.environ:
        return f"needs a data set: {error}"
    return None


@pytest.fixture
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, the real data where it is at hand, no network."""
    shared = ROOT.parent / "shared" / "data"
    if "BUDGE_DATA" not in os.environ and shared.is_dir():
        monkeypatch.setenv("BUDGE_DATA", str(shared))
    monkeypatch.setenv("BUDGE_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_page_runs(page: Path, own_directory: Path) -> None:
    try:
        run_page(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))
    except Exception as error:
        if reason := skip_reason(error):
            pytest.skip(reason)
        raise


class Examples(doctest.DocTestRunner):
    """Examples of what an extra brings are skipped aloud without it."""

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if isinstance(exc_info[1], ImportError) and (reason := skip_reason(exc_info[1])):
            pytest.skip(reason)
        super().report_unexpected_exception(out, test, example, exc_info)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_docstrings_run(path: Path, own_directory: Path) -> None:
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    if path.name == "__main__.py":
        return
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if reason := skip_reason(error):
            pytest.skip(reason)
        raise
    report: list[str] = []
    runner = Examples(optionflags=FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_a_failing_example_fails() -> None:
    """The runner sees a wrong output, a raised error, and carries names from block to block."""
    run_page("```python\na = 1\n```\n\n```python\n>>> a + 1\n2\n\n```\n", "good.md")
    with pytest.raises(pytest.fail.Exception, match=r"bad\.md:2"):
        run_page("```python\n>>> 1 + 1\n3\n\n```\n", "bad.md")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "bad.md")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n>>> 1 / 0\n0\n\n```\n", "bad.md")
    assert blocks("```yaml\na: 1\n```\n\n   ```python\n   b = 1\n   ```\n") == [(5, "b = 1\n")]


def test_only_a_missing_extra_is_excused() -> None:
    assert skip_reason(ModuleNotFoundError("no", name="sklearn.linear_model"))
    assert skip_reason(ModuleNotFoundError("no", name="budge.nowhere")) is None
    assert skip_reason(ValueError("no")) is None


def test_every_name_that_the_papers_terms_are_given_is_used_in_a_line_that_runs() -> None:
    """Names in the tables of docs/paper.md (`stress.drop`, `on_exceed="reject"`, `claim="above"` …) occur in its code."""
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.S))
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| in the paper")]
    terms = [term for row in rows for term in re.findall(r"`([^`]+)`", row)]
    assert len(rows) > 40
    short = [re.sub(r"\([^=()]*\)|[{(].*", "", term) if '="' not in term else term for term in terms]  # without names of parameters
    missing = [term for term in short if not all(re.search(rf"\b{name}\b", code) for name in re.findall(r"[A-Za-z_]{3,}", term))]
    assert missing == []
