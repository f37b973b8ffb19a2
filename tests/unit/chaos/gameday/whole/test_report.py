"""What a day leaves behind to read: a page that stands alone, and figures that say which promise was broken."""

from html.parser import HTMLParser

from smg_chaos.gameday.figures import Figure
from smg_chaos.gameday.whole.happened import Happened
from smg_chaos.gameday.whole.page import page
from smg_chaos.gameday.whole.report import table
from smg_chaos.gameday.whole.samples import Sample, Samples
from smg_chaos.gameday.whole.series import Graph, of_nodes, of_streams
from smg_chaos.gameday.whole.traffic import Stream, Verdict

FIGURES = [
    Figure("streams <wrong>", 2, "", 0, "of 9"),
    Figure("worst recovery", None, "s", 30.0),
    Figure("first text", 0.25, "s"),
]
FAULTS = [
    Happened("kill", "kill of n1, 3.0 s", "nodes", 105.0, 108.0, 1.5),
    Happened("crowd", "crowd, 5.0 s", "world", 107.0, 112.0, None),
]


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
    rows = table("A day", FIGURES).splitlines()[4:]
    assert [row.rpartition("| ")[0].count("broken") for row in rows] == [0, 0, 0]
    assert ["broken" in row for row in rows] == [True, True, False]


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
