"""All problems of an expression at once, given what is declared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from budge.errors import Problem, nearest

from .levels import Levels, Yield, levels_of, resolve, yielded
from .nodes import Boolean, Call, Compare, Member, Name, Node, Number, Text, children, quote, render, walk
from .statics import is_truth

__all__ = ["problems_of", "unknown_name"]


def problems_of(
    node: Node,
    levels: Levels,
    names: Collection[str],
    *,
    latent: Collection[str] | None = None,
    ordered: Collection[str] | None = None,
    boolean: bool = False,
    result: str | None = None,
) -> list[Problem]:
    """Undeclared names, unknown levels, categories used as numbers, a number where a truth is needed."""
    problems = list(_undeclared(node, names, latent, levels))
    if not problems:  # a name that is not declared has no levels either; one problem is enough
        goal = yielded(node, levels) if result is None else Yield(result, levels.get(result))
        resolve(node, levels, problems, goal)
        problems += _misused(node, levels, ordered, goal is not None)
    if boolean and not is_truth(node):
        problems.append(
            _problem(node, "a condition is needed, which is true or false", f"compare it, such as {render(node)[:40]} == 1")
        )
    return problems


def _problem(node: Node, what: str, remedy: str) -> Problem:
    return Problem(f"column {node.column + 1}", what, render(node), remedy)


def unknown_name(name: str, text: str, names: Iterable[str], levels: Mapping[str, Iterable[object] | None]) -> str:
    """Return what to write instead of a name that is none: backticks around a name with signs in it, quotes around a level, or the nearest name.

    Examples
    --------
    >>> unknown_name("capital", "capital - gain > 0", ["capital-gain", "sex"], {})
    'write the name in backticks: `capital-gain`'
    >>> unknown_name("female", "sex == female", ["sex"], {"sex": ["female", "male"]})
    "a level of sex stands in quotes: 'female'"
    """
    known = list(names)
    bare = text.replace(" ", "")
    signs = [n for n in known if quote(n) != n and name in n and n.replace(" ", "") in bare and quote(n) not in text]
    if signs:
        return f"write the name in backticks: {quote(max(signs, key=len))}"
    for column, own in levels.items():
        if any(level == name for level in own or ()):
            return f"a level of {quote(column)} stands in quotes: {name!r}"
    return nearest(name, known)


def _undeclared(node: Node, names: Collection[str], latent: Collection[str] | None, levels: Levels) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    told: set[str] = set()  # the parts of a name with signs in it are one mistake
    for n in walk(node):
        if isinstance(n, Name) and (n.layer, n.name) not in seen:
            seen.add((n.layer, n.name))
            declared = latent if n.layer == "latent" else names
            if declared is not None and n.name not in declared:
                what = "this latent draw is not declared" if n.layer == "latent" else "this feature is not declared"
                is_latent = n.layer == "value" and n.name in (latent or ())
                own = {} if n.layer == "latent" else levels
                hint = f"write latent.{n.name}" if is_latent else unknown_name(n.name, render(node), declared, own)
                if "backticks" not in hint or hint not in told:
                    told.add(hint)
                    yield _problem(n, what, hint)


def _misused(node: Node, levels: Levels, ordered: Collection[str] | None, result: bool) -> Iterator[Problem]:
    """Categories where numbers belong. ``result``: a category may be the result here."""
    match node:
        case Compare(first, rest):
            operands = [first, *(operand for _, operand in rest)]
            for (operator, _), a, b in zip(rest, operands, operands[1:]):
                yield from _compared(operator, a, b, levels, ordered)
            parts: tuple[Node, ...] = tuple(n for n in operands if levels_of(n, levels) is None)
        case Member(item, _, _):
            parts = () if levels_of(item, levels) is not None else (item,)
        case Call("where", (condition, a, b)):
            yield from _misused(condition, levels, ordered, False)
            yield from _misused(a, levels, ordered, result)
            yield from _misused(b, levels, ordered, result)
            return
        case Name():
            own = levels_of(node, levels)
            if own is not None and not result and not (ordered is not None and node.name in ordered):
                what = "a category is used as a number or a truth value"
                yield _problem(node, what, f"compare it with a level, such as {render(node)} == {own[0]!r}")
            return
        case _:
            parts = children(node)
    for part in parts:
        yield from _misused(part, levels, ordered, False)


def _compared(operator: str, a: Node, b: Node, levels: Levels, ordered: Collection[str] | None) -> Iterator[Problem]:
    for node, other in ((a, b), (b, a)):
        own, others = levels_of(node, levels), levels_of(other, levels)
        if own is None or not isinstance(node, Name):
            continue
        if operator not in ("==", "!=") and ordered is not None and node.name not in ordered:
            yield _problem(
                node, "the levels of this category have no order", "declare it ordered: true, or compare with == and in"
            )
        if others is not None and list(own) != list(others):
            if node is a:
                yield _problem(node, f"its levels are not those of {render(other)}", "compare each with a level")
        elif others is None and not isinstance(other, Text | Number | Boolean):
            yield _problem(
                node, "a category is compared with a number", f"compare it with a level, such as {render(node)} == {own[0]!r}"
            )
