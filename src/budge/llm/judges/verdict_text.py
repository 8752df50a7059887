"""The verdict in what a judging model wrote: alone, in JSON, in tags, after "Score:", or at the end of a chain of thought."""

from __future__ import annotations

import json
import re

__all__ = ["verdicts_in"]

_NAMES = r"(?:final[ _]?)?(?:verdict|score|rating|grade|judg(?:e)?ment|decision|result|label)"
_JSON = re.compile(r"\{[^{}]*\}", re.S)
_TAG = re.compile(rf"<({_NAMES})>\s*(.*?)\s*</\1>", re.S | re.I)
_LABEL = re.compile(rf"\b{_NAMES}\b[*_\"'`]*\s*(?:is\s*:?|:|=)\s*([^\n]*)", re.I)
_DOUBLE = re.compile(r"\[\[\s*([^\[\]]{1,40}?)\s*\]\]")
_EDGES = "\"'`*_.,;:!()[]{}<> \t"


def verdicts_in(said: str) -> list[str]:
    """Return the verdict of each form that the text has, each stripped of quotes and marks; of a form that occurs several times the last one.

    Examples
    --------
    >>> verdicts_in('The reply avoids the question. {"reason": "none", "score": 0}')
    ['0']
    >>> verdicts_in("It seems 1 at first.\\nScore: 0")
    ['0']
    >>> verdicts_in("<verdict>1</verdict> or [[0]]")
    ['1', '0']
    >>> verdicts_in("I cannot tell.")
    []
    """
    if re.fullmatch(r"[\w.+-]+", alone := _bare(said)):
        return [alone]
    outside, forms = said, []
    if (values := [value for text in _JSON.findall(said) if (value := _json_value(text)) is not None]) != []:
        forms.append(values[-1])
        outside = _JSON.sub(" ", outside)
    if (tags := _TAG.findall(outside)) != []:
        forms.append(_bare(tags[-1][1]))
        outside = _TAG.sub(" ", outside)
    if (marks := _DOUBLE.findall(outside)) != []:
        forms.append(_bare(marks[-1]))
        outside = _DOUBLE.sub(" ", outside)
    if (labels := [first for text in _LABEL.findall(outside) if (first := _first(text))]) != []:
        forms.append(labels[-1])
    if not forms:
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
        forms += [_bare(last)] if len(_bare(last).split()) == 1 and len(said.split()) > 1 else []
    return forms


def _json_value(text: str) -> str | None:
    """Return the value of the field of a verdict in a JSON object."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = [value for key, value in record.items() if re.fullmatch(_NAMES, str(key).strip(), re.I)]
    value = found[-1] if found else None
    if isinstance(value, bool):
        return str(int(value))
    return None if value is None or isinstance(value, dict | list) else _bare(str(value))


def _first(text: str) -> str:
    """Return the first word after a label; a score out of something ("3/5") is its first number."""
    word = _bare(text.split()[0]) if text.split() else ""
    return word.split("/")[0] if re.fullmatch(r"[\d.]+/[\d.]+", word) else word


def _bare(text: str) -> str:
    return text.strip().strip(_EDGES)
