"""Second series: streams and nodes of a day as values per second, for graphs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from smg_chaos.gameday.whole.clients.stream_traffic import FAILURES, Stream
from smg_chaos.gameday.whole.samples import Sample
from smg_chaos.statistics import percentile

Line = tuple[tuple[float, float], ...]
"""Points of (seconds since the beginning, value), in order of time."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Lines that share one scale, each with its name."""

    title: str
    lines: tuple[tuple[str, Line], ...]

    @property
    def top(self) -> float:
        """The largest value of all lines, at least 1."""
        return max((value for _, line in self.lines for _, value in line), default=1.0) or 1.0


def of_streams(streams: Sequence[Stream], begun_s: float, length_s: float) -> list[Graph]:
    """Return what became of streams, by the second in which they ended or spoke first."""
    seconds = range(max(1, round(length_s)))
    exact, cut, bad = ([0] * len(seconds) for _ in range(3))
    spoken: list[list[float]] = [[] for _ in seconds]
    for one in streams:
        at = _within(one.ended_s - begun_s, len(seconds))
        kind = exact if one.verdict == "exact" else bad if one.verdict in FAILURES else cut
        kind[at] += 1
        if one.spoken_s:
            spoken[_within(one.spoken_s - begun_s, len(seconds))].append(one.spoken_s - one.begun_s)
    median = tuple((float(s), percentile(some, 0.5)) for s, some in enumerate(spoken) if some)
    worst = tuple((float(s), max(some)) for s, some in enumerate(spoken) if some)
    return [
        Graph(
            "streams ended per second",
            (("exact", _line(exact)), ("excused", _line(cut)), ("broken promises", _line(bad))),
        ),
        Graph("seconds to the first text", (("p50", median), ("worst", worst))),
    ]


def of_nodes(samples: dict[str, list[Sample]], begun_s: float) -> list[Graph]:
    """Return memory, files and members of each node. Where a node did not say whom it sees, its line goes on."""
    memory, files, alive = [], [], []
    for name, some in sorted(samples.items()):
        memory.append((name, tuple((one.at_s - begun_s, one.rss_mb) for one in some)))
        files.append((name, tuple((one.at_s - begun_s, float(one.files)) for one in some)))
        seen = tuple(
            (one.at_s - begun_s, float(one.alive)) for one in some if one.alive is not None
        )
        alive.append((name, _steps(seen)))
    return [
        Graph("members that each node sees alive", tuple(alive)),
        Graph("resident memory, MB", tuple(memory)),
        Graph("open files", tuple(files)),
    ]


def _within(at_s: float, seconds: int) -> int:
    return min(max(0, int(at_s)), seconds - 1)


def _line(counts: Sequence[int]) -> Line:
    return tuple((float(second), float(count)) for second, count in enumerate(counts))


def _steps(line: Line) -> Line:
    """Return a line that changes at once, not slowly from one point to the next."""
    found: list[tuple[float, float]] = list(line[:1])
    for (_, before), (at_s, value) in pairwise(line):
        if value != before:
            found.append((at_s, before))
        found.append((at_s, value))
    return tuple(found)
