"""Usage on disk, whatever happens in whatever order: what was written is never lost, and nothing counts twice."""

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import merged
from smg_node.cluster.usage import usage_log
from smg_node.cluster.usage.usage_log import UsageLog
from smg_node.core.prices.price_list import PriceList
from support.http.request_usage import MIDNIGHT, Wall, outcome
from support.tools.example_counts import example_count

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("use"), st.integers(1, 4)),
        st.tuples(st.just("pass"), st.sampled_from([0.3, 1, 7, 30, -0.01, -2, -26])),
        st.tuples(st.just("write"), st.just(0)),
        st.tuples(st.just("full"), st.integers(0, 200)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("kill"), st.just(0)),
        st.tuples(st.just("ask"), st.just(0)),
    ),
    max_size=30,
)
FIRST, END = MIDNIGHT - 24 * 300, MIDNIGHT + 24 * 300


class Life:
    """One process of a node."""

    def __init__(self, folder: Path, number: int, wall: Wall) -> None:
        self.book = UsageBook(PriceList(), now_ms=wall.now_ms, life=f"life{number}")
        self.log = UsageLog(folder, f"life{number}")

    def write(self) -> None:
        lines = self.book.unwritten()
        self.log.append(lines)
        self.book.written(lines)

    def requests(self) -> int:
        lines = merged(self.log.read(FIRST, END), self.book.lines()).values()
        return sum(line.requests for line in lines)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """A disk that takes so many bytes more."""
    left = size

    def write(descriptor: int, content: bytes) -> None:
        nonlocal left
        taken = os.write(descriptor, content[:left]) if left else 0
        left -= taken
        if taken < len(content):
            raise OSError(errno.ENOSPC, "no space left on device")

    with mock.patch.object(usage_log, "_write", write):
        yield


@given(STEPS)
@settings(max_examples=example_count(150), deadline=None)
def test_what_was_written_is_never_lost_and_nothing_counts_twice(
    steps: list[tuple[str, float]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, wall, lives = Path(name), Wall(), 1
        life = Life(folder, lives, wall)
        # What must be there after a kill, and what may be: a disk may have taken some before it was full.
        certain = seen = 0
        for what, much in steps:
            if what == "use":
                for at in range(int(much)):
                    life.book.record(outcome(f"t{at}"))
                seen += int(much)
            elif what == "pass":
                wall.pass_hours(much)
            elif what == "write":
                life.write()
                certain = seen
            elif what == "full":
                with room_for(int(much)):
                    try:
                        life.write()
                        certain = seen
                    except OSError:
                        pass
            elif what == "compact":
                for day in range(
                    (wall.ms // 3_600_000) // 24 - 2, (wall.ms // 3_600_000) // 24 + 3
                ):
                    if (folder / "lock").exists() and life.log.read(day * 24, day * 24 + 24):
                        life.log.compact(day)
            elif what == "kill":
                life.log.close()
                lives += 1
                life = Life(folder, lives, wall)
                there = life.requests()
                assert certain <= there <= seen
                certain = seen = there
            else:
                assert life.requests() == seen
        life.write()
        assert life.requests() == seen
        assert UsageLog(folder, "reader").read(FIRST, END) or not seen


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=20), st.randoms())
@settings(deadline=None)
def test_lines_may_come_in_any_order_and_any_number_of_times(
    uses: list[tuple[str, int]], rng: Random
) -> None:
    wall = Wall()
    book = UsageBook(PriceList(), now_ms=wall.now_ms, life="a")
    lines = []
    for tenant, hours in uses:
        book.record(outcome(tenant))
        wall.pass_hours(hours % 2)
        lines += book.lines()
    rng.shuffle(lines)
    latest = merged(lines, lines[: len(lines) // 2])
    total = Counter[str]()
    for line in latest.values():
        total[line.tenant] += line.requests
    assert total == Counter(tenant for tenant, _ in uses)
