"""Drawings: every text escaped, both renderers draw the same numbers, files are whole or not there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budge.errors import InputError, MissingDependencyError, OutputExistsError, StorageError, printable
from budge.report.figures import Figure, Panels, figure_style
from budge.report.figures.colours import PALETTE
from budge.report.figures.drawing import Area, Bar, Line, Point
from budge.report.figures.scales import round_ticks
from budge.report.figures.words import clean, shortened, text_width, wrapped

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "\" onload='x'",
    "\x1b[31mred\x1b[0m",
    "]]>&amp;<",
    "$x^2$",
    "=cmd|' /C calc'!A0",
    "\u202eevil",
    "a\nb\x00",
]


def test_a_figure_is_one_short_line_where_it_is_not_shown() -> None:
    figure = everything("Gain\nby rule")
    assert repr(figure) == "<Figure: Gain by rule>"
    assert repr(Panels("Both", (figure, figure))) == "<Panels: Both>"


def everything(name: str) -> Figure:
    """A figure that has the name wherever a text can stand."""
    figure = Figure(name, x=(0, 10), y=(0, 5), about=name, note=name, x_label=name, y_label=name)
    figure.bar(1, 4, at=1, thick=0.5, title=name)
    figure.line([(0, 0), (5, 2), (10, 5)], title=name, dash="dashed")
    figure.point(3, 3, title=name)
    figure.point(4, 3, title=name, shape="diamond", hollow=True)
    figure.marks.append(Area(((1, 1), (2, 2), (1, 2)), "green", title=name))
    figure.text(5, 2, name, title=name)
    figure.interval(2, float("inf"), at=4, title=name)
    figure.tick("x", [0, 5], [name, name])
    figure.tick("y", [0, 5], [name, name], grid=False)
    figure.legend([name, name], ["blue", "ink"], kind="line", dashes=["solid", "dotted"])
    figure.legend([name], ["green"], kind="diamond")
    figure.legend([name], ["green"], kind="point")
    return figure


@given(st.text(max_size=60))
def test_any_text_is_only_text(name: str) -> None:
    plain = everything("plain")
    shape = [e.tag for e in ET.fromstring(plain.svg()).iter()]
    for standalone in (True, False):
        root = ET.fromstring(everything(name).svg(standalone=standalone))
        tags = [e.tag for e in root.iter() if e.tag not in (f"{SVG}title", f"{SVG}desc", f"{SVG}text")]
        allowed = set(shape) | {f"{SVG}{t}" for t in ("polyline", "polygon", "rect", "circle", "line", "path", "svg", "g")}
        assert set(tags) <= allowed
        assert not any(key.lower().startswith("on") or key == "id" for e in root.iter() for key in e.attrib)
        words = root.find(f"{SVG}title").text or ""
        assert words == clean(name)
        assert words.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_in_a_page(name: str) -> None:
    """As HTML reads it, where XML's rules do not hold: no element or attribute comes from a name."""
    seen: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.add(tag)
            assert not any(key.startswith("on") or key in ("href", "style", "id") for key, _ in attrs)

    text = everything(name).svg(standalone=False)
    Reader().feed(text)
    assert seen <= {"svg", "title", "desc", "text", "polyline", "polygon", "rect", "circle", "line", "path", "g"}
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_screen_readers_get() -> None:
    root = ET.fromstring(everything("Gist").svg(standalone=False))
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]


def test_a_file_is_white_and_an_element_follows_the_page() -> None:
    figure = everything("x")
    alone, inside = figure.svg(), figure.svg(standalone=False)
    assert 'fill="#ffffff"/>' in alone
    assert "currentColor" not in alone
    assert "currentColor" in inside
    assert 'fill="#ffffff"/>' not in inside
    assert "style=" not in inside  # a page may forbid inline styles
    used = set(re.findall(r'class="([^"]+)"', inside)) - {"budge-figure"}
    css = figure_style()
    for name in {word for words in used for word in words.split()}:
        assert f".{name} {{" in css
    assert all(f"--budge-{name}: {pair[1]}" in css for name, pair in PALETTE.items())


def contrast(a: str, b: str) -> float:
    """The contrast ratio of two colours, as WCAG defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        lin = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_colours_can_be_seen(side: int) -> None:
    paper, wash = PALETTE["paper"][side], PALETTE["wash"][side]
    for name, pair in PALETTE.items():
        if name in ("ink", "muted"):
            assert min(contrast(pair[side], paper), contrast(pair[side], wash)) >= 4.5
        elif name not in ("paper", "wash", "faint"):
            assert contrast(pair[side], paper) >= 3


def test_points_lie_where_the_numbers_say() -> None:
    figure = Figure("x", x=(0, 10), y=(0, 5))
    figure.line([(0, 0), (10, 5)])
    figure.bar(2, 6, at=1, thick=1)
    root = ET.fromstring(str(figure))
    points = [tuple(map(float, p.split(","))) for p in root.find(f".//{SVG}polyline").get("points").split()]
    assert points == [pytest.approx(figure.at(0, 0), abs=0.05), pytest.approx(figure.at(10, 5), abs=0.05)]
    bar = root.findall(f".//{SVG}rect")[1]
    left, right = figure.at(2, 1)[0], figure.at(6, 1)[0]
    assert float(bar.get("x")) == pytest.approx(left, abs=0.05)
    assert float(bar.get("width")) == pytest.approx(right - left, abs=0.1)
    assert figure.at(5, 0)[0] == pytest.approx((figure.at(0, 0)[0] + figure.at(10, 0)[0]) / 2)
    log = Figure("x", x=(1, 100), y=(0, 1), log_x=True)
    assert log.at(10, 0)[0] == pytest.approx((log.at(1, 0)[0] + log.at(100, 0)[0]) / 2)


def test_what_is_not_finite_is_left_out() -> None:
    figure = Figure("x", x=(0, 1), y=(0, 1))
    figure.line([(0, 0), (float("nan"), 1), (1, float("inf")), (1, 1)])
    figure.interval(float("-inf"), 0.4, at=0.5)
    lines = [m for m in figure.marks if isinstance(m, Line)]
    assert lines[0].points == ((0.0, 0.0), (1.0, 1.0))
    assert lines[1].points == ((0, 0.5), (0.4, 0.5))
    assert len(lines) == 3  # one cap: the end that is there
    assert "nan" not in str(figure)
    assert "inf" not in str(figure)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(4, 10))
def test_ticks_are_round_few_and_inside(low: float, span: float, most: int) -> None:
    high = low + span
    ticks = round_ticks(low, high, most)
    assert len(ticks) <= most + 1
    if span > 1e-8 * abs(low):
        step = ticks[1] - ticks[0]
        assert all(low - step * 1e-6 <= t <= high + step * 1e-6 for t in ticks)
        assert len({f"{t:,.10g}" for t in ticks}) == len(ticks)


@given(st.text(max_size=80), st.floats(20, 400))
def test_cut_words_fit(words: str, room: float) -> None:
    short = shortened(clean(words), room)
    assert text_width(short) <= room + 1e-9
    assert all(text_width(line) <= room + 1e-9 for line in wrapped(words, room))
    if text_width(clean(words)) <= room:
        assert short == clean(words)


def test_saving(tmp_path: Path) -> None:
    figure = everything("x")
    path = figure.save(tmp_path / "a.svg")
    assert path.read_text(encoding="utf-8") == str(figure)
    with pytest.raises(OutputExistsError, match="overwrite=True"):
        figure.save(path)
    figure.save(path, overwrite=True)
    with pytest.raises(InputError, match=r"\.svg"):
        figure.save(tmp_path / "a.gif")
    with pytest.raises(StorageError, match="cannot be written"):
        figure.save(tmp_path / "none" / "a.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.svg"
    path.write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        everything("x").save(path, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]
    assert path.read_bytes() == b"old"


def test_without_matplotlib_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"budge\[plot\]"):
        everything("x").save(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
    assert str(everything("x")).startswith("<svg")  # needs nothing


def test_matplotlib_draws_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    figure = everything("x")
    ax = figure.to_matplotlib()
    drawn = [tuple(map(tuple, line.get_xydata())) for line in ax.lines]
    for mark in figure.marks:
        if isinstance(mark, Line):
            assert tuple(mark.points) in drawn
        elif isinstance(mark, Point):
            assert ((mark.x, mark.y),) in drawn
        elif isinstance(mark, Bar):
            corners = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in ax.patches if hasattr(p, "get_width")]
            assert (mark.x0, mark.y0, mark.x1 - mark.x0, mark.y1 - mark.y0) in corners
    assert ax.get_xlim() == figure.x
    assert ax.get_ylim() == figure.y
    assert ax.get_xticks().tolist() == [0, 5]
    for ending in ("png", "pdf"):
        assert figure.save(tmp_path / f"a.{ending}").stat().st_size > 1000


@pytest.mark.parametrize("name", HOSTILE)
def test_matplotlib_shows_names_as_they_are(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    ax = everything(name).to_matplotlib()
    texts = [*ax.texts, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
    assert all(not text.get_parse_math() for text in texts)
    assert any(clean(name) == text.get_text() for text in texts)
    ax.figure.savefig(tmp_path / "a.png")


def test_panels_stand_side_by_side() -> None:
    one, two = everything("one"), everything("two")
    both = Panels("both", (one, two))
    root = ET.fromstring(str(both))
    assert [g.get("transform") for g in root.findall(f"{SVG}g")] == ["translate(0 0)", f"translate({one.width} 0)"]
    assert both.width == one.width + two.width
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    assert len(both.to_matplotlib()) == 2


def test_panels_stand_one_below_the_other() -> None:
    one, two = everything("one"), everything("two")
    both = Panels("both", (one, two), down=True)
    places = [str(g.get("transform")) for g in ET.fromstring(str(both)).findall(f"{SVG}g")]
    assert places[0] == "translate(0 0)"
    assert places[1].startswith("translate(0 ")
    assert float(places[1][12:-1]) == pytest.approx(one.height, abs=0.05)
    assert (both.width, both.height) == (one.width, one.height + two.height)
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    high, low = (ax.get_position() for ax in both.to_matplotlib())
    assert high.y0 > low.y1


def test_clean_is_printable() -> None:
    assert clean("a\x1b[1m\nb") == "a\\x1b[1m b" == printable("a\x1b[1m b")
