"""Page of the report: self-contained HTML, graphs with faults as bands behind them. Pure.

Pure.
"""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Final

from smg_chaos.gameday.whole.fault_record import Happened
from smg_chaos.gameday.whole.second_series import Graph
from smg_chaos.gameday.whole.surprises import Story
from smg_chaos.statistics import Figure

_WIDTH: Final = 1100
_HEIGHT: Final = 130
_LEFT: Final = 46
_COLOURS: Final = ("#1b6ca8", "#e08e0b", "#c0392b", "#2e8b57", "#7d3c98", "#566573", "#a04000")
_BANDS: Final = {"nodes": "#f5b7b1", "world": "#aed6f1"}
_STYLE: Final = """
body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}.bad{color:#b00;font-weight:600}.good{color:#286b2d}
svg{display:block;margin:.2em 0 1.2em}h2{margin:1.6em 0 .3em;font-size:1.1em}pre{white-space:pre-wrap}
.key span{margin-right:1.2em}
"""


def page(
    title: str,
    figures: Sequence[Figure],
    faults: Sequence[Happened],
    graphs: Sequence[Graph],
    broken: Sequence[str],
    stories: Sequence[Story] = (),
    *,
    begun_s: float,
    length_s: float,
) -> str:
    """Return the page. Faults have times on the cluster's clock, graphs count from the day's beginning."""
    missed = [one for one in figures if not one.is_met]
    word = (
        f'<p class="bad">{len(missed)} promises were broken.</p>'
        if missed
        else '<p class="good">Every promise was kept.</p>'
    )
    drawn = "\n".join(_graph(one, faults, begun_s, length_s) for one in graphs)
    told = f"<h2>What went wrong</h2><pre>{escape(chr(10).join(broken))}</pre>" if broken else ""
    told += "".join(map(_story, stories))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{word}{_figures(figures)}{told}"
        f'<p class="key"><span style="background:{_BANDS["nodes"]}">nodes are hurt</span>'
        f'<span style="background:{_BANDS["world"]}">what is around them is</span></p>'
        f"{drawn}<h2>Timeline</h2>{_timeline(faults, begun_s)}</html>\n"
    )


def _figures(figures: Sequence[Figure]) -> str:
    rows = []
    for one in figures:
        value = "never" if one.value is None else f"{one.value:,.2f}".removesuffix(".00")
        limit = "" if one.limit is None else f"≤ {one.limit:g} {one.unit}"
        kind = "bad" if not one.is_met else "good"
        word = "" if one.limit is None else "kept" if one.is_met else "BROKEN"
        rows.append(
            f'<tr><td>{escape(one.metric)}<td class="n">{value} {one.unit}<td class="n">{limit}'
            f'<td class="{kind}">{word}<td>{escape(one.says)}'
        )
    head = "<tr><th>What<th>Value<th>Target<th><th>"
    return f"<table>{head}{''.join(rows)}</table>"


def _story(one: Story) -> str:
    where = f" at {one.node}" if one.node else ""
    faults = one.faults or ("no fault was on, or just over",)
    lines = [one.says, *(f"  {fault}" for fault in faults), *one.logged]
    return (
        f"<details><summary>{one.ended_s:.1f} s: {escape(one.kind + where)}, {one.at}</summary>"
        f"<pre>{escape(chr(10).join(lines))}</pre></details>"
    )


def _timeline(faults: Sequence[Happened], begun_s: float) -> str:
    rows = [
        f'<tr><td class="n">{one.begun_s - begun_s:.1f} s<td>{escape(one.told)}'
        f'<td class="n">{"never" if one.heals_s is None else f"{one.heals_s:.2f} s"}'
        for one in sorted(faults, key=lambda one: one.begun_s)
    ]
    return f"<table><tr><th>At<th>Fault<th>Healed after its end{''.join(rows)}</table>"


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return fewer points that draw the same line: of each pixel's column the first, the ends of its stretch and the last.

    A day of an hour has twenty lines of 3,600 points each, on a page a thousand pixels wide.
    """
    kept: list[int] = []
    for _, group in groupby(range(len(points)), key=lambda at: int(points[at][0])):
        column = list(group)
        by_height = sorted(column, key=lambda at: points[at][1])
        kept += sorted({column[0], by_height[0], by_height[-1], column[-1]})
    found = [points[at] for at in kept]
    level = [
        before[1] == point[1] == after[1]
        for before, point, after in zip(found, found[1:], found[2:], strict=False)
    ]
    inner = [point for point, is_level in zip(found[1:-1], level, strict=True) if not is_level]
    return [*found[:1], *inner, *found[1:][-1:]]


def _graph(graph: Graph, faults: Sequence[Happened], begun_s: float, length_s: float) -> str:
    scale = (_WIDTH - _LEFT) / max(length_s, 1.0)

    def across(at_s: float) -> float:
        return round(_LEFT + min(max(at_s, 0.0), length_s) * scale, 1)

    bands = "".join(
        f'<rect x="{across(one.begun_s - begun_s)}" y="0" height="{_HEIGHT}" '
        f'width="{max(1.0, round((one.ended_s - one.begun_s) * scale, 1))}" '
        f'fill="{_BANDS[one.lane]}" opacity=".55"><title>{escape(one.told)}</title></rect>'
        for one in faults
    )
    lines = "".join(
        f'<polyline fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="1.3" points="'
        + " ".join(
            f"{x:g},{y:g}"
            for x, y in thinned(
                [
                    (across(at_s), round(_HEIGHT - value / graph.top * (_HEIGHT - 8), 1))
                    for at_s, value in line
                ]
            )
        )
        + '"/>'
        for number, (_, line) in enumerate(graph.lines)
    )
    key = "".join(
        f'<span style="color:{_COLOURS[number % len(_COLOURS)]}">{escape(name)}</span>'
        for number, (name, _) in enumerate(graph.lines)
    )
    labels = "".join(
        f'<text x="{across(length_s * part / 4)}" y="{_HEIGHT + 14}" font-size="11" '
        f'text-anchor="middle">{length_s * part / 4:.0f} s</text>'
        for part in range(4)
    )
    return (
        f'<h2>{escape(graph.title)}</h2><div class="key">{key}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 18}" width="100%">{bands}{lines}{labels}'
        f'<text x="2" y="12" font-size="11">{graph.top:.4g}</text>'
        f'<text x="2" y="{_HEIGHT}" font-size="11">0</text></svg>'
    )
