"""The colours of figures: a few names, each with a light and a dark value; a page may set its own through a style sheet."""

from __future__ import annotations

from typing import Final

__all__ = ["DASHES", "PALETTE", "SERIES", "VERDICTS", "figure_style"]

#: name -> (on white, on dark). Told apart by readers who do not see all colours (Okabe and Ito, the light ones darkened a little).
PALETTE: Final[dict[str, tuple[str, str]]] = {
    "blue": ("#0072b2", "#56b4e9"),
    "vermilion": ("#d55e00", "#ff8f4d"),
    "green": ("#009e73", "#2fc99b"),
    "purple": ("#b8558c", "#e09cc4"),
    "orange": ("#b57d00", "#f0b93a"),
    "sky": ("#3a8fc4", "#9ad2f5"),
    "grey": ("#767676", "#a3a3a3"),
    "ink": ("#1a1a1a", "#eeeeee"),
    "muted": ("#5f5f5f", "#b4b4b4"),
    "faint": ("#dddddd", "#444444"),
    "wash": ("#f3f5f7", "#22262b"),
    "paper": ("#ffffff", "#16181c"),
}
#: The colours of lines and bars that stand beside each other.
SERIES: Final = ("blue", "vermilion", "green", "purple", "orange", "sky", "grey")
#: Lines of one colour, or of none (print), are told apart by these.
DASHES: Final = ("solid", "dashed", "dotted", "dashdot")
#: Always the same, whatever was declared as harm: figures of two audits can be laid side by side.
VERDICTS: Final = {"none": "vermilion", "below": "vermilion", "inconclusive": "grey", "at the threshold": "purple", "above": "blue"}


def figure_style(scope: str = ".budge-figure") -> str:
    """CSS for pages that hold inline figures: light, dark where the reader wants it (or ``data-theme`` says so), light in print.

    Without it an inline figure is readable too: its ink is the page's text colour, its other colours are fixed.

    Examples
    --------
    >>> css = figure_style()
    >>> "--budge-blue: #0072b2" in css and "prefers-color-scheme: dark" in css
    True
    """
    light, dark = (" ".join(f"--budge-{name}: {pair[k]};" for name, pair in PALETTE.items()) for k in (0, 1))
    rules = "\n".join(
        f"{scope} .f-{name} {{ fill: var(--budge-{name}); fill-opacity: 1; }} "
        f"{scope} .s-{name} {{ stroke: var(--budge-{name}); stroke-opacity: 1; }}"
        for name in PALETTE
    )
    return (
        f":root {{ {light} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
        f"@media print {{ :root, :root[data-theme] {{ {light} }} }}\n"
        f"{rules}\n"
        f"{scope} .soft {{ opacity: 0.35; }}\n"
    )
