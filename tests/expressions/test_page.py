"""The page on expressions runs, and names every function and distribution that there is."""

from __future__ import annotations

import re
from pathlib import Path

from budge.expressions.distributions import DISTRIBUTIONS
from budge.expressions.functions import FUNCTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "expressions.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)


def test_the_page_names_everything() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for rule in [*FUNCTIONS.values(), *DISTRIBUTIONS.values()]:
        for signature in rule.signature.split(" or "):
            assert f"`{signature}`" in text, signature
