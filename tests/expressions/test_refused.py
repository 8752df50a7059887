"""Nothing else parses: each refused construct, with its column and its remedy, and at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge.errors import ExpressionError
from budge.expressions import parse
from cpu import within

REFUSED = [
    ("", "empty", ""),
    ("   ", "empty", ""),
    ("x.y", "column 1: a dot may follow only", "backticks"),
    ("befor.x", "column 1: a dot may follow only", "did you mean 'before'"),
    ("before.x.y", "column 9: attributes", "backticks"),
    ("(x).real", "column 4: attributes", ""),
    ("'a'.upper", "column 4: attributes", ""),
    ("before.", "a name must follow before.", ""),
    ("foo(1)", "column 1: this function is unknown", "known: abs"),
    ("rond(x)", "column 1: this function is unknown", "did you mean 'round'"),
    ("__import__('os')", "two underscores", "backticks"),
    ("__class__", "two underscores", "backticks"),
    ("x.__class__", "a dot may follow only", ""),
    ("before.__class__ == 1", "column 8: names do not start with two underscores", ""),
    ("eval('1')", "unknown", ""),
    ("before.x(1)", "column 8: only functions can be called", ""),
    ("`abs`(1)", "column 1: only functions can be called", ""),
    ("(x)(1)", "column 4: only functions", ""),
    ("abs(x)(1)", "column 7: only functions", ""),
    ("round(x, digits=2)", "column 16: this character.*'='", "without names"),
    ("max(*x)", "column 5: a value is expected", ""),
    ("lambda: 1", "column 7.*':'", "lambdas"),
    ("lambda", "word of Python", ""),
    ("[i for i in x]", "column 1: a list cannot stand here", ""),
    ("x in [i for i in y]", "only constants", ""),
    ("x in y", "in needs a list of constants", "write it as"),
    ("x in []", "is empty", ""),
    ("x in (1)", "needs a list", r"\[value\]"),
    ("x in {1, 2}", "column 6.*'{'", "square brackets"),
    ("x in ['a', 1]", "mixes strings and numbers", ""),
    ("x in [y]", "only constants", ""),
    ("x in [1] == True", "chained", "and"),
    ("1 < x in [1]", "chained", "and"),
    ("x[0]", "column 2: subscripts", ""),
    ("x[0:1]", "column 4.*':'", ""),
    ("f'{x}'", "column 1: strings have no prefix", ""),
    ("x == b'a'", "column 6: strings have no prefix", ""),
    ("x == r'a'", "no prefix", ""),
    ("(y := 1)", "column 4.*':'", "assignments"),
    ("x = 1", "column 3.*'='", "compare with =="),
    ("x == 1; y", "';'", ""),
    ("1j", "column 1: this is not a number", ""),
    ("0x10", "not a number", ""),
    ("012", "not a number", ""),
    ("1__0", "not a number", ""),
    ("12abc", "not a number", "backticks"),
    ("1.2.3", "not a number", ""),
    ("1e999", "too large", ""),
    ("1e301", "too large", ""),
    ("9" * 5000, "too long", ""),
    ("9007199254740993", "exactly", "exponent"),
    ("9**9**9", "column 4: the exponent is beyond 100", ""),
    ("x ** 1000", "exponent is beyond", ""),
    ("x ** -101", "exponent is beyond", ""),
    ("1 / 0", "not a finite number", "division by zero"),
    ("x + log(0)", "column 5: this part is not a finite number", ""),
    ("sqrt(-1)", "not a finite number", ""),
    ("exp(1e3)", "not a finite number", ""),
    ("x if y else z", "column 3: this word of Python", "where"),
    ("x is 1", "word of Python", "=="),
    ("None", "word of Python", "missing"),
    ("await x", "word of Python", ""),
    ("class == 1", "word of Python", "backticks"),
    ("x & y", "'&'", "write and"),
    ("x | y", "'\\|'", "write or"),
    ("~x", "'~'", "write not"),
    ("!x", "'!'", "not"),
    ("x ^ 2", "'\\^'", r"\*\*"),
    ("x ≤ 2", "'≤'", "<="),
    ("x @ y", "'@'", ""),
    ("x # y", "'#'", "comments"),
    ("x ? y", "'\\?'", "where"),
    ("+x", "plus sign", "leave it out"),
    ("x +", "ends where a value", ""),
    ("(x", "ends where a closing bracket", ""),
    ("x)", "an operator or the end", ""),
    ("x y", "column 3: an operator or the end", ""),
    ("x == not y", "column 6: not cannot stand here", "brackets"),
    ("'a' 'b'", "an operator or the end", ""),
    ("x == 'a", "column 6", "close the string"),
    ("`x", "column 1", "backtick"),
    ("`` == 1", "empty", ""),
    ("x == '\\q'", "escape", ""),
    ("x == '\\ud800'", "surrogate", ""),
    ("...", "a value is expected", ""),
    ("x, y", "an operator or the end", ""),
    ("yield x", "word of Python", ""),
    ("'a' + 1 == 2", "column 1: a string cannot be used", ""),
    ("abs('a')", "a string cannot be used", ""),
    ("'a' and x", "a string cannot be used", ""),
    ("'a' == 'b'", "compared only with a feature", ""),
    ("x + 1 == 'a'", "compared only with a feature", ""),
    ("action.x == 'a'", "difference", "compare the value"),
    ("where(x, 'a', 1)", "mix strings and numbers", ""),
    ("where(x, 'a', 'b') == 'a'", "column", ""),
    ("abs()", "abs got 0 arguments", r"write abs\(x\)"),
    ("min(x)", "min got 1 argument ", ""),
    ("where(x, 1)", "where got 2 arguments", ""),
    ("round(x, y)", "whole constant", ""),
    ("round(x, 99)", "whole constant", ""),
    ("clip(x, 2, 1)", "above the upper", "swap"),
    ("normal(0, 1)", "random draws cannot stand here", "effects"),
    ("abs([1])", "list cannot stand here", ""),
    ("x\x00y", "not in the expression language", ""),
    ("x\u202ey", "not in the expression language", ""),
]


@pytest.mark.parametrize(("text", "what", "remedy"), REFUSED, ids=lambda t: repr(t)[:30])
def test_refused(text: str, what: str, remedy: str) -> None:
    with within(1), pytest.raises(ExpressionError, match=f"(?s){what}.*{remedy}") as caught:
        parse(text)
    problem = caught.value.problems[0]
    assert problem.remedy, "every refusal says what to do"
    if text.strip():
        assert problem.where.startswith("column "), "and where"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("bernoulli(1.5)", r"p must lie in \[0, 1\]"),
        ("bernoulli(-0.1)", "p must"),
        ("normal(0, -1)", "sd must not be negative"),
        ("normal(x, -1)", "sd must"),
        ("lognormal(0, -1)", "sd must"),
        ("uniform(2, 1)", "low must not exceed high"),
        ("integers(3, 1)", "low must not"),
        ("integers(0.5, 2)", "whole numbers"),
        ("integers(0.5, x)", "whole numbers"),
        ("poisson(-1)", "rate must"),
        ("binomial(2.5, 0.5)", "n must"),
        ("binomial(x, 2)", "p must"),
        ("binomial(-1, 0.5)", "n must"),
        ("exponential(-1)", "mean must"),
        ("gamma(0, 1)", "shape must"),
        ("gamma(1, -1)", "scale must"),
        ("beta(0, 1)", "must be positive"),
        ("triangular(3, 2, 4)", "low <= mode <= high"),
        ("triangular(5, x, 3)", "low <= mode <= high"),
        ("normal(1e300 * 1e300, 1)", "finite"),
        ("categorical([1, 2], [1])", "2 values and 1 weights"),
        ("categorical([1, 2], [1, -1])", "at least 0"),
        ("categorical([1, 2], [0, 0])", "not all 0"),
        ("categorical([1, 1], [1, 1])", "twice"),
        ("categorical([], [])", "literal lists"),
        ("categorical(1, 2)", "literal lists"),
        ("categorical([1, 'a'], [1, 1])", "mixes"),
        ("categorical(['a', 'b'], [1, 1]) + 1", "number"),
        ("categorical([[1]], [1])", "flat list"),
        ("categorical([1, 2], ['a', 'b'])", "string|number"),
        ("normal([1], 2)", "not lists"),
        ("multivariate_normal([0, 0], [[1, 2], [2, 1]])", "positive semi-definite"),
        ("multivariate_normal([0, 0], [[1, 0.5], [0, 1]])", "symmetric"),
        ("multivariate_normal([0, 0], [[1]])", "2 components, the covariance is 1 by 1"),
        ("multivariate_normal([0], [1])", "literal lists"),
        ("multivariate_normal([0], [[1]]) + 1", "whole expression"),
        ("normal(0)", "got 1 argument"),
        ("norml(0, 1)", "did you mean 'normal'"),
    ],
)
def test_impossible_distributions_are_refused_when_parsed(text: str, what: str) -> None:
    with pytest.raises(ExpressionError, match=what):
        parse(text, distributions=True)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(" * 100_000 + "x" + ")" * 100_000,
        "(" * 9_999,
        "-" * 9_999 + "x",
        "not " * 2_400 + "x",
        "2" + "**2" * 3_000,
        "[" * 9_999,
        "x in " + "[" * 9_000,
        "min(" * 2_400,
        "x" + "[0]" * 3_000,
        "'" * 9_999,
        "`" * 9_999,
        "1" * 9_999,
        "x" * 10_001,
        "abs(" * 51 + "x" + ")" * 51,
        "1" + "_1" * 4_000,
        "'" + "\\" * 9_000,
        "x" + "." * 9_000,
        "9" * 100_000,
    ],
    ids=lambda t: f"{t[:6]}…{len(t)}",
)
def test_hostile_texts_are_refused_at_once(text: str) -> None:
    with within(1), pytest.raises(ExpressionError):
        parse(text, distributions=True)


@pytest.mark.parametrize(
    "text", ["x" + "+x" * 4_999, "x in [" + "1," * 4_900 + "]", "(" * 50 + "x" + ")" * 50, "x" + " and x" * 1_600]
)
def test_long_but_harmless_texts_are_read_at_once(text: str) -> None:
    with within(5):
        expression = parse(text)
        assert parse(str(expression)[:10_000] if len(str(expression)) <= 10_000 else text) == expression
        expression.evaluate({("value", "x"): 1.0})


@pytest.mark.parametrize("given_", [None, 5, 0.5, True, ["x"], {"x": 1}, b"x"])
def test_only_texts_are_parsed(given_: object) -> None:
    with pytest.raises(ExpressionError, match="must be a text"):
        parse(given_)  # type: ignore[arg-type]


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text(alphabet="xy01. ()[]'`\"+-*/%<>=!,andortinwhe", max_size=40)), st.booleans())
def test_any_text_parses_or_is_refused(text: str, distributions: bool) -> None:
    """No other error ever comes out, and what is read can be written and read again."""
    try:
        expression = parse(text, distributions=distributions)
    except ExpressionError:
        return
    assert parse(str(expression), distributions=distributions) == expression


def test_the_position_is_that_of_the_text_as_written() -> None:
    with pytest.raises(ExpressionError, match=r"column 24.*'rond'"):
        parse("`größe = ü` >= 1\n  and rond(x)")
