"""The report as one file: everything inside it, nothing fetched, nothing that a name could turn into code.

Names and labels are escaped by the template; data for the page's own script is JSON in which ``<``, ``>`` and ``&`` are written as
escapes; and a content security policy lets only the style and the script run whose hashes it names.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from budge.audit.design import Progress
from budge.audit.result import Audit
from budge.audit.sources import TableSource
from budge.errors import OutputExistsError, StorageError, printable
from budge.files import write_whole
from budge.wording import Wording, check_names

__all__ = ["asset", "embedded", "policy", "render", "rendered", "worded", "write_report"]


def worded(audit: Audit, given: Wording, by: Any = (), *, people: Any = None, shell: bool = False) -> Wording:
    """Return the audit's words with those that are given in their place; an error where these name what is not there.

    `by` are groups of a report, and `people` the table of the audit's people where it is at hand.
    """
    from budge.report.contents import model_of

    source = None if audit.context is None else audit.context.source
    table = people if people is not None else source.frame if isinstance(source, TableSource) else pd.DataFrame()
    if given.group_labels and (table.empty or any(labels for _, labels in audit.design.groups)):  # the design's labels take the place of the table's values
        table = pd.concat([rows.groups for rows in audit.rows.values()])
    others = [by] if isinstance(by, str | pd.Series) else by
    names = [*(column for column, _ in audit.design.groups), *(each if isinstance(each, str) else getattr(each, "name", None) or "group" for each in others)]
    check_names(given, model_of(audit), table, others=names, shell=shell)
    return audit.wording.but(**given.to_dict())


def write_report(
    audit: Audit, path: str | Path, *, by: Any = (), why: bool = True, ablation: Any = None, sensitivity: Any = None, title: str = "",
    nouns: Wording | None = None, progress: Progress | bool | None = None, overwrite: bool = False,
) -> Path:  # fmt: skip
    """Write the report, whole or not at all; see `Audit.to_html`."""
    place, audit = Path(path), audit.whole()
    if place.is_dir():
        raise OutputExistsError("is a folder", where=str(place), remedy="give the path of a file, such as report.html")
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    if not place.parent.is_dir():
        raise StorageError("there is no such folder", where=str(place.parent), remedy="make it first")
    text = render(audit, by=by, why=why, ablation=ablation, sensitivity=sensitivity, title=title, nouns=nouns, progress=progress)
    return write_whole(place, text, overwrite=overwrite)


def render(
    audit: Audit, *, by: Any = (), why: bool = True, ablation: Any = None, sensitivity: Any = None, title: str = "", nouns: Wording | None = None,
    progress: Progress | bool | None = None,
) -> str:  # fmt: skip
    """Return the report as a text."""
    from markupsafe import Markup

    from budge.report.contents import contents
    from budge.report.figures import figure_style

    columns: Sequence[Any] = [by] if isinstance(by, str | pd.Series) else list(by)
    view, data = contents(
        audit, by=columns, ablation=ablation, sensitivity=sensitivity, title=title, nouns=nouns or Wording(), ask_why=why, progress=progress
    )
    style = asset("look.css") + asset("report.css") + figure_style()
    script = asset("report.js")
    return rendered(
        "report.html", **view, version=view["info"]["version"], style=Markup(style), script=Markup(script), policy=policy(style, script),
        data=Markup(embedded(data)),
    )  # fmt: skip


def rendered(name: str, **values: Any) -> str:
    """Return a page of the package with its values, which are escaped unless they are markup."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda v: v if isinstance(v, Markup) or not isinstance(v, str) else printable(v),
    )  # fmt: skip
    return pages.get_template(name).render(**values)


def asset(name: str) -> str:
    """A file that ships with the package."""
    return (files("budge.report") / "assets" / name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element or the line.

    Examples
    --------
    >>> embedded({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def policy(style: str, script: str) -> str:
    """The content security policy: nothing is fetched, and only this style and this script count."""
    hashes = [f"'sha256-{b64encode(sha256(body.encode()).digest()).decode()}'" for body in (style, script)]
    return f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"
