"""What a day leaves behind to read: a page that stands alone, and figures that say which promise was broken."""

from dataclasses import asdict
from html.parser import HTMLParser
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.whole.clients.stream_traffic import Stream, Verdict
from smg_chaos.gameday.whole.fault_record import Happened
from smg_chaos.gameday.whole.page import page, thinned
from smg_chaos.gameday.whole.report import markdown
from smg_chaos.gameday.whole.samples import Sample, Samples
from smg_chaos.gameday.whole.second_series import Graph, of_nodes, of_streams
from smg_chaos.gameday.whole.verdict import survived
from smg_chaos.statistics import Figure

FIGURES = [
    Figure("streams <wrong>", 2, "", 0, "of 9"),
    Figure("worst recovery", None, "s", 30.0),
    Figure("first text", 0.25, "s"),
]
FAULTS = [
    Happened("kill", "kill of n1, 3.0 s", "nodes", 105.0, 108.0, 1.5),
    Happened("crowd", "crowd, 5.0 s", "world", 107.0, 112.0, None),
]

TOLD = {
    "nodes": 3,
    "engines": 2,
    "seed": 7,
    "store": "redis",
    "seconds": 600.4,
    "planned_s": 600.0,
    "only": ["kill", "crowd"],
    "version": "1.2.3",
    "machine": {
        "commit": "abc",
        "python": "3.11.7",
        "kernel": "6.1",
        "cores": 2,
        "cpu": "some",
        "load_average": [1.5, 1.0, 0.5],
    },
    "kept": False,
    "figures": [{**asdict(one), "is_met": one.is_met} for one in FIGURES],
    "faults": [
        {"name": "kill", "lasted_s": 3.0, "healed_after_s": 1.5},
        {"name": "kill", "lasted_s": 4.0, "healed_after_s": 2.5},
        {"name": "crowd", "lasted_s": 5.0, "healed_after_s": None},
    ],
    "broken": ["wrong: it was"],
}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def stream(ended_s: float, verdict: Verdict = "exact") -> Stream:
    return Stream(ended_s - 1.0, ended_s - 0.75, ended_s, "n1", verdict, 1)


def test_the_page_needs_nothing_else_and_says_what_was_broken() -> None:
    graphs = of_streams([stream(103.0), stream(104.0, "wrong")], 100.0, 20.0)
    text = page("A day", FIGURES, FAULTS, graphs, ["wrong: <b>"], begun_s=100.0, length_s=20.0)
    tags = _Tags()
    tags.feed(text)
    assert not [one for _, one in tags.seen if "src" in one or "href" in one]
    assert "2 promises were broken" in text
    assert "streams &lt;wrong&gt;" in text
    assert "wrong: &lt;b&gt;" in text
    bands = [one for tag, one in tags.seen if tag == "rect"]
    assert len(bands) == len(FAULTS) * len(graphs)
    assert len([one for tag, one in tags.seen if tag == "polyline"]) == 5


def test_a_kept_day_says_so_even_when_nothing_was_asked() -> None:
    text = page("A day", FIGURES[2:], [], [Graph("none", ())], [], begun_s=0.0, length_s=0.0)
    assert "Every promise was kept" in text


def test_the_table_marks_what_was_broken_and_leaves_alone_what_is_only_told() -> None:
    lines = markdown(TOLD).splitlines()
    rows = lines[lines.index("|---|---|---|---|") + 1 :][: len(FIGURES)]
    assert [row.rpartition("| ")[0].count("broken") for row in rows] == [0, 0, 0]
    assert ["broken" in row for row in rows] == [True, True, False]


def test_the_markdown_says_how_to_repeat_it_and_what_each_kind_of_fault_did() -> None:
    text = markdown(TOLD)
    assert "--nodes 3 --minutes 10 --seed 7 --store redis --engines 2 --faults kill,crowd\n" in text
    assert "| kill | 2 | 7 | 1.5 s | 2.5 s |" in text
    assert "| crowd | 1 | 5 | never | never |" in text
    assert "- `wrong: it was`" in text
    assert "smg-node 1.2.3 (abc), Python 3.11.7, Linux 6.1, 2 cores of some; load 1.5" in text
    older = {
        name: one for name, one in TOLD.items() if name not in ("machine", "planned_s", "only")
    }
    assert "--minutes 10 --seed 7" in markdown({**older, "kept": True, "broken": []})


@given(
    st.lists(st.integers(0, 6).map(float), min_size=1, max_size=200),
    st.floats(0.01, 3.0, allow_nan=False),
)
def test_a_thinned_line_has_the_same_ends_and_the_same_stretch_in_each_column(
    heights: list[float], step: float
) -> None:
    points = [(round(at * step, 1), height) for at, height in enumerate(heights)]
    kept = thinned(points)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert set(kept) <= set(points)
    drawn: dict[int, set[float]] = {}
    for (x, y), (to_x, to_y) in pairwise([*kept, kept[-1]]):
        for column in range(int(x), int(to_x) + 1):
            if int(to_x) == int(x) or y == to_y:
                drawn.setdefault(column, set()).update((y, to_y))
            else:
                drawn.setdefault(int(x), set()).add(y)
                drawn.setdefault(int(to_x), set()).add(to_y)
    for x, y in points:
        assert min(drawn[int(x)]) <= y <= max(drawn[int(x)])
    assert len(kept) <= 4 * (int(points[-1][0]) + 1)


def test_streams_count_as_survivors_where_an_engine_was_hurt_while_they_were_open() -> None:
    engine = Happened("engine", "engine of engine 1", "world", 105.0, 107.0, 0.0)
    streams = [stream(104.9), stream(105.5), stream(107.5, "wrong"), stream(108.5)]
    told = survived(streams, [engine, *FAULTS])
    assert (told.value, told.says) == (2, "1 of them whole and exact")


def test_each_stream_counts_in_the_second_in_which_it_ended() -> None:
    streams = [stream(100.0), stream(101.5), stream(101.6, "excused"), stream(999.0, "lost")]
    ended, spoken = of_streams(streams, 100.0, 3.0)
    lines = {name: [value for _, value in line] for name, line in ended.lines}
    assert lines == {
        "exact": [1.0, 1.0, 0.0],
        "excused": [0.0, 1.0, 0.0],
        "broken promises": [0.0, 0.0, 1.0],
    }
    assert all(value == 0.25 for _, line in spoken.lines for _, value in line)


def test_a_member_count_changes_at_once() -> None:
    seen = [Sample(at_s, 1, 50.0, 9, alive) for at_s, alive in ((0.0, 3), (5.0, None), (9.0, 2))]
    members = of_nodes({"n1": seen}, 0.0)[0]
    assert members.lines == (("n1", ((0.0, 3.0), (9.0, 3.0), (9.0, 2.0))),)


def test_growth_is_of_one_life_since_it_was_warm() -> None:
    grown = [Sample(float(at_s), 1, 100.0 + at_s, 10, 3) for at_s in range(60)]
    younger = [Sample(60.0 + at_s, 2, 10.0, 10, 3) for at_s in range(60)]
    short = [Sample(float(at_s), 3, 10.0 * at_s, 10, 3) for at_s in range(20)]
    samples = Samples({"n1": [*grown, *younger], "n2": short})
    assert samples.growth(lambda one: one.rss_mb) == 57.0 - 32.0
    assert samples.growth(lambda one: one.files) == 0.0
