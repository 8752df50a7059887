"""The words of the language: text → tokens, with the column of each. Everything outside the alphabet is refused here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from budge.errors import ExpressionError

__all__ = ["MAX_LENGTH", "Token", "fail", "scan"]

MAX_LENGTH = 10_000  # characters
MAX_NUMBER = 1e300

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],.])""",
    re.VERBOSE,
)
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
HINTS = {
    "=": "compare with ==; arguments are given without names",
    "&": "write and",
    "|": "write or",
    "~": "write not",
    "!": "write not, or != to compare",
    "^": "write ** for a power",
    ":": "there are no slices, lambdas or assignments",
    "{": "write a list in square brackets",
    "}": "write a list in square brackets",
    "@": "there is no matrix product",
    ";": "write one expression",
    "#": "there are no comments",
    "\\": "leave it out",
    "?": "write where(condition, a, b)",
    "'": "close the string",
    '"': "close the string",
    "`": "close the name with a backtick",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "×": "write *",
    "÷": "write /",
    "−": "write -",
    "–": "write -",
    "“": "use straight quotes",
    "”": "use straight quotes",
    "‘": "use straight quotes",
    "’": "use straight quotes",
    "$": "leave it out",
}


@dataclass(frozen=True)
class Token:
    """One word: its kind (number, string, quoted, name, symbol, end), its text, its meaning and its column from 0."""

    kind: str
    text: str
    value: str | float
    column: int


def fail(what: str, column: int, piece: object, remedy: str = "") -> ExpressionError:
    """The error for a piece of the text; columns are counted from 1."""
    return ExpressionError(what, where=f"column {column + 1}", got=piece, remedy=remedy)


def scan(text: str) -> list[Token]:
    """The tokens of a text, ending in one of kind ``end``."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(text)} characters, more than {MAX_LENGTH}",
            got=text[:40],
            remedy="split it into several rules",
        )
    if not text.strip():
        raise ExpressionError("the expression is empty", got=text, remedy="write one, such as income >= 12 * rent")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            piece = text[position]
            raise fail(
                "this character is not in the expression language",
                position,
                piece,
                HINTS.get(piece, "put unusual names in backticks"),
            )
        kind, piece = str(match.lastgroup), match.group()
        following = text[match.end() : match.end() + 1]
        if kind == "number" and text[match.end() :].strip() == "%":
            raise fail("a percentage is no number", position, f"{piece}%", f"write {float(piece) / 100:g}")
        if kind == "number":
            tokens.append(Token(kind, piece, _number(piece, following, position), position))
        elif kind == "string":
            tokens.append(Token(kind, piece, _string(piece, position), position))
        elif kind == "quoted":
            tokens.append(Token(kind, piece, _quoted(piece, position), position))
        elif kind != "space":
            if kind == "name" and following and following in "'\"":
                raise fail("strings have no prefix", position, piece + following, "write a plain string in quotes")
            tokens.append(Token(kind, piece, piece, position))
        position = match.end()
    tokens.append(Token("end", "", "", len(text)))
    return tokens


def _number(piece: str, following: str, column: int) -> float:
    if following.isalnum() or following in ("_", ".") or re.match(r"0[0-9_]+$", piece):
        raise fail(
            "this is not a number",
            column,
            piece[:40] + following,
            "write it in digits, such as 12, 0.5 or 1e6; put a level in quotes, an unusual name in backticks",
        )
    if len(piece) > 400:
        raise fail("this number is too long", column, piece[:20] + "…", f"write at most {MAX_NUMBER:g}")
    try:
        value = float(piece)
    except ValueError:
        raise fail("this is not a number", column, piece[:40], "write it in digits, such as 12, 0.5 or 1e6") from None
    if value > MAX_NUMBER:
        raise fail("this number is too large", column, piece[:40], f"write at most {MAX_NUMBER:g}")
    if piece.replace("_", "").isdigit() and int(piece) != int(value):
        raise fail(
            "this whole number cannot be held exactly",
            column,
            piece[:40],
            "stay within 2**53, or write it with an exponent, such as 1e20",
        )
    return value


def _string(piece: str, column: int) -> str:
    def unescape(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code and int(code, 16) < 0x110000:
            return chr(int(code, 16))
        if match[4] in ESCAPES:
            return ESCAPES[match[4]]
        raise fail("this escape is unknown", column + 1 + match.start(), match.group(), "write a backslash as two")

    return _encodable(ESCAPE.sub(unescape, piece[1:-1]), piece, column)


def _quoted(piece: str, column: int) -> str:
    name = piece[1:-1].replace("``", "`")
    if not name:
        raise fail("the name in backticks is empty", column, piece, "write the name of a feature")
    return _encodable(name, piece, column)


def _encodable(value: str, piece: str, column: int) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise fail("this text holds half a character (a lone surrogate)", column, piece, "write the whole character") from None
    return value
