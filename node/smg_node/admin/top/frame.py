"""Frame of the screen: draws a view, as the operator chose it, into so many lines and columns.
Pure.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from smg_node.admin.top.number_text import format_number, format_part, format_time
from smg_node.admin.top.panes import PANES, Pane, Section
from smg_node.admin.top.table import laid_out, ordered
from smg_node.admin.top.terminal_lines import Line, Span, Style, cut_to, joined, printable
from smg_node.admin.top.view import NodeLine, View

_HINT: Final = "q quit  s sort  r turn round  1-4 panes  p pause  ? keys"
_KEYS: Final = (
    ("1 2 3 4", "nodes; models and workers; tenants; limits"),
    ("tab", "the next pane"),
    ("s  S", "sort by the next column, by the one before"),
    ("r", "turn the order round"),
    ("up down  k j", "one line up or down where there are more than fit"),
    ("pgup pgdn  b space", "ten lines"),
    ("p", "pause, and go on"),
    ("?", "show or hide the keys"),
    ("q  ctrl-c", "quit"),
)
_TERMS: Final = (
    "REQ/S are generations that ended, OPEN requests that are under way now.",
    "TTFT is the time to the first token, TPOT that for each one after it; 50 and",
    "95 are percentiles of what ended in the last interval.",
    "OUT/S and IN/S are tokens of answers and of prompts, CACHED a part of these.",
    "CPU is of one processor. USED is the part of a limit's window that is spent.",
)
_PAGE: Final = 10


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The operator's choice of what is shown. `sorts` has the column of each pane that is not in
    its first order.
    """

    pane: int = 0
    sorts: dict[str, str] = field(default_factory=dict)
    turned: bool = False
    offset: int = 0
    paused: bool = False
    keys: bool = False
    over: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """What can be drawn: the last view, its node and time, and the failure since."""

    view: View | None
    time: str
    every_s: float
    trouble: str = ""


def pressed(wish: ViewOptions, key: str, rows: int = 0) -> ViewOptions:
    """Return the options after a key press; a key without a meaning changes nothing.

    `rows` is the number in the longest table of the pane, which bounds scrolling.
    """
    if key.isdigit() and 1 <= int(key) <= len(PANES):
        return replace(wish, pane=int(key) - 1, offset=0, keys=False)
    match key:
        case "q" | "ctrl-c" | "ctrl-d":
            return replace(wish, over=True)
        case "tab":
            return replace(wish, pane=(wish.pane + 1) % len(PANES), offset=0, keys=False)
        case "s" | "S":
            return _sorted_by(wish, 1 if key == "s" else -1)
        case "r":
            return replace(wish, turned=not wish.turned)
        case "p":
            return replace(wish, paused=not wish.paused)
        case "?" | "h":
            return replace(wish, keys=not wish.keys)
        case _:
            offset = min(wish.offset + _STEPS.get(key, 0), rows - 1)
            return replace(wish, offset=max(0, offset))


_STEPS: Final = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "pgup": -_PAGE,
    "b": -_PAGE,
    "pgdn": _PAGE,
    "space": _PAGE,
}


def _sorted_by(wish: ViewOptions, step: int) -> ViewOptions:
    pane = PANES[wish.pane]
    titles = pane.titles()
    now = wish.sorts.get(pane.name, pane.sections[0].sort)
    title = titles[(titles.index(now) + step) % len(titles)]
    return replace(wish, sorts={**wish.sorts, pane.name: title}, offset=0)


def rows_of(view: View | None, wish: ViewOptions) -> int:
    """Return how many rows the longest table of the pane has."""
    if view is None:
        return 0
    return max(len(section.rows(view) or ()) for section in PANES[wish.pane].sections)


def draw(scene: Scene, wish: ViewOptions, width: int, height: int) -> list[Line]:
    """Return exactly `height` lines, none of them wider than `width`."""
    top = [*_head(scene), _tabs(wish, scene)]
    bottom = [*_notes(scene), [Span(_HINT, "dim")]]
    room = max(0, height - len(top) - len(bottom))
    if wish.keys:
        body: list[Line] = list(_key_lines())
    elif scene.view is None:
        body = [[Span("Asking …" if not scene.trouble else "", "dim")]]
    else:
        body = _body(scene.view, wish, width, room)
    blank: list[Line] = [[]] * max(0, room - len(body))
    lines = [*top, *body[:room], *blank, *bottom]
    return [cut_to(line, width) for line in lines[:height]]


def draw_all(scene: Scene, panes: Sequence[Pane], width: int) -> list[Line]:
    """Return these panes in full, for output without a terminal."""
    lines: list[Line] = list(_head(scene))
    for pane in panes:
        for section in pane.sections:
            assert scene.view is not None, "there is nothing to be drawn before the first look"
            lines += [[], *_table(section, scene.view, ViewOptions(), width)]
    notes = _notes(scene)
    return [cut_to(line, width) for line in (*lines, *([[]] if notes else []), *notes)]


# ── Around the tables ────────────────────────────────────────────────────────


def _head(scene: Scene) -> list[Line]:
    view = scene.view
    if view is None:
        return [[Span("smg-admin top", "bold")]]
    nodes = Counter(node.state for node in view.nodes)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(nodes.items()))
    sick = len(nodes) != 1 or "ready" not in nodes
    workers = f"workers {view.workers_ready}/{view.workers_total} ready"
    short: Style = "warning" if view.workers_ready < view.workers_total else ""
    total = view.total
    return [
        joined(
            [
                Span(f"{len(view.nodes)} node{'s'[: len(view.nodes) != 1]}", "bold"),
                Span(counted, "warning" if sick else "good"),
                Span(workers, "bad" if not view.workers_ready else short),
                Span(f"through {printable(view.node)}"),
                Span(f"{scene.time} every {scene.every_s:g}s", "dim"),
            ]
        ),
        _facts(
            ("requests", f"{format_number(total.requests)}/s", ""),
            ("open", format_number(view.open), ""),
            ("queue", format_number(view.queue or 0), "warning" if view.queue else ""),
            ("failed", f"{format_number(total.failed)}/s", "bad" if total.failed else ""),
            ("refused", f"{format_number(total.refused)}/s", "warning" if total.refused else ""),
        ),
        _facts(
            ("TTFT p50", format_time(total.ttft_p50_s), ""),
            ("p95", format_time(total.ttft_p95_s), ""),
            ("tokens out", f"{format_number(total.completion_tokens)}/s", ""),
            ("in", f"{format_number(total.prompt_tokens)}/s", ""),
            ("cached", format_part(total.cached), ""),
        ),
    ]


def _facts(*facts: tuple[str, str, Style]) -> Line:
    line: list[Span] = []
    for label, value, style in facts:
        line += [Span(f"{'   ' if line else ''}{label} ", "dim"), Span(value, style or "bold")]
    return line


def _tabs(wish: ViewOptions, scene: Scene) -> Line:
    tabs = [
        Span(f" {at + 1} {pane.title} ", "chosen" if at == wish.pane else "")
        for at, pane in enumerate(PANES)
    ]
    paused = [Span("PAUSED", "warning")] if wish.paused else []
    return joined([*tabs, *paused], " ")


def _notes(scene: Scene) -> list[Line]:
    """Return the problems: of the query, else of the first node that reports one."""
    if scene.trouble:
        return [[Span(printable(scene.trouble), "bad")]]
    noted = [] if scene.view is None else [node for node in scene.view.nodes if node.note]
    if not noted:
        return []
    more = f"  (and {len(noted) - 1} more)" if len(noted) > 1 else ""
    return [[Span(f"{_note(noted[0])}{more}", "warning")]]


def _note(node: NodeLine) -> str:
    return printable(f"{node.name}: {node.note}")


def _key_lines() -> Iterable[Line]:
    yield []
    for keys, meaning in _KEYS:
        yield [Span(f"  {keys:<20}", "bold"), Span(meaning)]
    yield []
    for text in _TERMS:
        yield [Span(text, "dim")]


# ── The tables ───────────────────────────────────────────────────────────────


def _body(view: View, wish: ViewOptions, width: int, room: int) -> list[Line]:
    tables = [_table(section, view, wish, width) for section in PANES[wish.pane].sections]
    lines: list[Line] = []
    for at, table in enumerate(tables):
        left = room - len(lines)
        # What the tables below need for a head and a few rows is theirs; the last one has all that is left.
        below = sum(min(len(other), _SHARE) + 1 for other in tables[at + 1 :])
        lines += _scrolled(table, max(0, left - below), wish.offset)
        if at + 1 < len(tables):
            lines.append([])
    return lines


_SHARE: Final = 8


def _scrolled(table: Sequence[Line], room: int, offset: int) -> list[Line]:
    """Return the head and as many rows as there is room for, from `offset` on; the last line says how many more."""
    head, rows = list(table[:1]), table[1:]
    fit = room - 1
    if len(rows) <= fit:
        return [*head, *rows]
    if fit <= 0:
        return head[:room]
    start = min(offset, len(rows) - fit + 1)
    shown = rows[start : start + fit - 1]
    left = len(rows) - len(shown) - start
    above = f"{start} above, " if start else ""
    return [*head, *shown, [Span(f"… {above}{left} below: up and down, or sort", "dim")]]


def _table(section: Section, view: View, wish: ViewOptions, width: int) -> list[Line]:
    pane = PANES[wish.pane]
    titles = {column.title for column in section.columns}
    wanted = wish.sorts.get(pane.name, section.sort)
    sort = wanted if wanted in titles else section.sort
    there = section.rows(view)
    rows = ordered(section.columns, there or (), sort, turned=wish.turned)
    lines = laid_out(section.columns, rows, width, sort)
    if rows:
        return lines
    return [lines[0], [Span("Asking …" if there is None else section.empty, "dim")]]
