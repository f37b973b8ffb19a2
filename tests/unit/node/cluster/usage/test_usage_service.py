import asyncio
import errno
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import NONE, OTHER, Line
from smg_node.cluster.usage import usage_service as module
from smg_node.cluster.usage.usage_log import DAYS_KEPT
from smg_node.cluster.usage.usage_service import ASKING_MAX, USAGE, ClusterUsage
from smg_node.core.errors import SmgError
from smg_node.core.prices.price_list import PriceList
from smg_node.http.ports.usage import Amounts, Aspect, UsageQuery, UsageRow
from support.http.fake_cluster import member_row
from support.http.request_usage import MIDNIGHT, Wall, outcome
from support.state.fake_shared_state import SharedWorld


class Disk:
    """What a node has kept."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.fails = False
        self.hangs: asyncio.Event | None = None

    async def read(self, first: int, end: int) -> Sequence[Line]:
        if self.hangs is not None:
            await self.hangs.wait()
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        return [line for line in self.lines if first <= line.hour < end]


class Nodes:
    """Nodes that ask each other."""

    def __init__(self, *names: str) -> None:
        self.wall = Wall(MIDNIGHT + 12)
        self.world = SharedWorld(*names)
        self.states = dict.fromkeys(names, "alive")
        self.disks = {name: Disk() for name in names}
        self.books = {
            name: UsageBook(PriceList(), now_ms=self.wall.now_ms, life=f"life-{name}")
            for name in names
        }
        self.desks = {name: self.desk(name) for name in names}

    def desk(self, name: str) -> ClusterUsage:
        def members() -> list[Any]:
            return [
                member_row(one, state, me=one == name) for one, state in sorted(self.states.items())
            ]

        mesh = self.world.meshes[name]
        book, disk = self.books[name], self.disks[name]
        return ClusterUsage(name, book, disk, members, mesh, now_ms=self.wall.now_ms)


def wish(*by: Aspect, first: int = MIDNIGHT, end: int = MIDNIGHT + 24) -> UsageQuery:
    return UsageQuery(first, end, by)


def requests(rows: Sequence[UsageRow]) -> Mapping[tuple[object, ...], int]:
    return {(row.hour, row.tenant, row.key, row.model): row.used.requests for row in rows}


async def test_what_all_nodes_know_is_summed_up_at_any_of_them() -> None:
    nodes = Nodes("a", "b", "c")
    for name, times in (("a", 1), ("b", 2), ("c", 3)):
        for _ in range(times):
            nodes.books[name].record(outcome())
    nodes.books["b"].record(outcome("beta", "n", "k2"))
    nodes.disks["c"].lines = [Line("x.1", MIDNIGHT, "acme", "k1", "m", 4, 1, 40, 16, 20, 7)]
    for desk in nodes.desks.values():
        sums = await desk.usage(wish("tenant", "model"))
        assert requests(sums.rows) == {(None, "acme", "", "m"): 10, (None, "beta", "", "n"): 1}
        assert sums.rows[0].used == Amounts(10, 1, 100, 40, 50, 7)
        assert sums.total == Amounts(11, 1, 110, 44, 55, 7)
        assert (sums.exact, sums.cut, sums.silent) == (True, 0, {})


async def test_rows_are_apart_by_what_is_asked_for_and_sorted() -> None:
    nodes = Nodes("a")
    nodes.disks["a"].lines = [
        Line("x.1", MIDNIGHT + hour, tenant, key, model, 1)
        for hour in (25, 1, 0)
        for tenant, key, model in (("b", "k2", "m"), ("a", "k1", "n"), ("a", "k1", "m"))
    ]
    seen: dict[tuple[Aspect, ...], Mapping[tuple[object, ...], int]] = {}
    ways: list[tuple[Aspect, ...]] = [("tenant",), ("day", "key"), ("hour",), ()]
    for by in ways:
        sums = await nodes.desks["a"].usage(wish(*by, end=MIDNIGHT + 48))
        seen[by] = requests(sums.rows)
        assert list(seen[by]) == sorted(seen[by], key=str)
    assert seen == {
        ("tenant",): {(None, "a", "", ""): 6, (None, "b", "", ""): 3},
        ("day", "key"): {
            (MIDNIGHT, "", "k1", ""): 4,
            (MIDNIGHT, "", "k2", ""): 2,
            (MIDNIGHT + 24, "", "k1", ""): 2,
            (MIDNIGHT + 24, "", "k2", ""): 1,
        },
        ("hour",): {(MIDNIGHT + hour, "", "", ""): 3 for hour in (0, 1, 25)},
        (): {(None, "", "", ""): 9},
    }


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ({"tenant": "acme"}, 3),
        ({"model": "m"}, 3),
        ({"key": "k1"}, 1),
        ({"tenant": "acme", "model": "n"}, 1),
        ({"tenant": NONE}, 1),
        ({"tenant": OTHER}, 7),
        ({"tenant": "nobody"}, 0),
        ({}, 11),
    ],
)
async def test_only_what_is_asked_for_is_summed_up(only: dict[str, Any], found: int) -> None:
    nodes = Nodes("a", "b")
    nodes.disks["b"].lines = [
        Line("x.1", MIDNIGHT, "acme", "k1", "m", 1),
        Line("x.1", MIDNIGHT, "acme", "k2", "m", 1),
        Line("x.1", MIDNIGHT, "acme", "k2", "n", 1),
        Line("x.1", MIDNIGHT, "", "", "m", 1),
        Line("x.1", MIDNIGHT, OTHER, OTHER, OTHER, 7),
        Line("x.1", MIDNIGHT - 1, "acme", "k1", "m", 99),
        Line("x.1", MIDNIGHT + 24, "acme", "k1", "m", 99),
    ]
    sums = await nodes.desks["a"].usage(replace(wish("tenant", "key", "model"), **only))
    assert sums.total.requests == found


async def test_what_is_written_while_it_is_asked_for_counts_once() -> None:
    nodes = Nodes("a")
    book = nodes.books["a"]
    book.record(outcome())
    nodes.disks["a"].lines = book.lines()
    book.record(outcome())
    assert (await nodes.desks["a"].usage(wish())).total.requests == 2
    nodes.disks["a"].lines = book.lines()
    assert (await nodes.desks["a"].usage(wish())).total.requests == 2


async def test_who_cannot_be_asked_is_named_and_nothing_is_called_exact() -> None:
    nodes = Nodes("a", "b", "c", "d", "e", "f")
    nodes.states |= {"c": "dead", "d": "left", "f": "suspect"}
    nodes.world.meshes["a"].silent.add("b")
    nodes.disks["e"].fails = True
    for book in nodes.books.values():
        book.record(outcome())
    sums = await nodes.desks["a"].usage(wish())
    assert sums.silent == {
        "b": "no answer in time",
        "c": "it is dead",
        "d": "it is left",
        "e": "its files cannot be read: input/output error",
    }
    assert not sums.exact
    assert sums.total.requests == 3, "e still knows what is not written"


@pytest.mark.parametrize("answer", [b"", b"\xc1", b"[]", b"\x80", msgspec.msgpack.encode([1, 2])])
async def test_an_answer_that_is_none_is_a_silent_node(answer: bytes) -> None:
    nodes = Nodes("a", "b")

    async def say(payload: bytes, caller: str) -> bytes:
        return answer

    nodes.world.answers["b"][USAGE] = say
    sums = await nodes.desks["a"].usage(wish())
    assert sums.silent == {"b": "it says nothing that is understood here"}


@pytest.mark.parametrize("question", [b"", b"\xc1", b"\x93\x01\x02\x03", b"what?"])
async def test_a_question_that_is_none_gets_an_answer(question: bytes) -> None:
    nodes = Nodes("a", "b")
    answer = await nodes.world.answers["b"][USAGE](question, "a")
    assert b"does not understand" in answer


async def test_what_is_too_much_is_put_together_and_the_sum_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = Nodes("a", "b")
    nodes.disks["b"].lines = [
        Line("x.1", MIDNIGHT, f"t{at:04}", "k", "m" * 200, at, 0, at) for at in range(1, 1_001)
    ]
    monkeypatch.setattr(module, "ANSWER_BYTES_MAX", 150_000)
    sums = await nodes.desks["a"].usage(wish("hour", "tenant", "model"))
    assert sums.total.requests == 500_500
    assert 0 < len(sums.rows) == 1_000 - sums.cut + 1
    (together,) = [row for row in sums.rows if row.tenant == OTHER]
    assert together.hour is None
    assert together.used.requests < 500_500 / 2, "those that used least are put together"
    monkeypatch.setattr(module, "ROWS_MAX", 10)
    sums = await nodes.desks["a"].usage(wish("hour", "tenant"))
    assert len(sums.rows) == 10
    assert sums.total.requests == 500_500


async def test_what_is_older_than_what_is_kept_is_not_asked_for() -> None:
    nodes = Nodes("a")
    sums = await nodes.desks["a"].usage(wish(first=0, end=MIDNIGHT + 13))
    assert (sums.first, sums.end) == (MIDNIGHT - 24 * DAYS_KEPT, MIDNIGHT + 13)
    sums = await nodes.desks["a"].usage(wish(first=0, end=5))
    assert sums.first == sums.end
    assert sums.total == Amounts()


async def test_only_so_many_may_ask_at_the_same_time() -> None:
    nodes = Nodes("a")
    nodes.disks["a"].hangs = asyncio.Event()
    desk = nodes.desks["a"]
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(desk.usage(wish())) for _ in range(ASKING_MAX)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(SmgError, match="too many") as refused:
            await desk.usage(wish())
        nodes.disks["a"].hangs.set()
    assert refused.value.retry_after_s
    assert all(task.result().exact for task in asking)
    nodes.disks["a"].hangs = None
    assert (await desk.usage(wish())).exact


async def test_a_node_that_lost_some_of_it_says_so() -> None:
    nodes = Nodes("a", "b")
    nodes.books["b"].lost = 1
    sums = await nodes.desks["a"].usage(wish())
    assert sums.silent == {"b": "its disk was full for so long that some of it is lost"}


WEB = Line(
    "x.1@s/web", MIDNIGHT, "acme", "k1", "", cost=5, tool="s/web", runs=3, failed=1, run_ms=9
)
TOOLS = [
    WEB,
    replace(WEB, part="x.1@s/img", tool="s/img", runs=2),
    replace(WEB, part="x.1@t/web", tool="t/web", runs=1, tenant="beta"),
    Line("x.1", MIDNIGHT, "acme", "k1", "m", 4),
]


@pytest.mark.parametrize(
    ("by", "only", "found"),
    [
        (("tool",), {}, {("", ""): 0, ("s", "s/img"): 2, ("s", "s/web"): 3, ("t", "t/web"): 1}),
        (("server",), {}, {("", ""): 0, ("s", ""): 5, ("t", ""): 1}),
        (("server", "tool"), {"server": "s"}, {("s", "s/img"): 2, ("s", "s/web"): 3}),
        (("tenant",), {"server": "s"}, {("", ""): 5}),
        (("tenant",), {"tool": "t/web"}, {("", ""): 1}),
        (("tool",), {"tool": NONE}, {("", ""): 0}),
        (("tool",), {"tool": "s"}, {}),
        ((), {}, {("", ""): 6}),
    ],
)
async def test_runs_are_apart_by_tool_or_server_and_found_by_them(
    by: tuple[Aspect, ...], only: dict[str, Any], found: dict[tuple[str, str], int]
) -> None:
    nodes = Nodes("a", "b")
    nodes.disks["b"].lines = TOOLS
    sums = await nodes.desks["a"].usage(replace(wish(*by), **only))
    assert {(row.server, row.tool): row.used.tool_runs for row in sums.rows} == found
    assert sums.total.tool_runs == sum(found.values())
    assert sums.exact


async def test_a_release_that_cannot_leave_other_tools_out_is_not_believed() -> None:
    nodes = Nodes("a", "b")
    asked: list[Any] = []

    async def say(payload: bytes, caller: str) -> bytes:
        asked.append(msgspec.msgpack.decode(payload))
        return msgspec.msgpack.encode(
            {"lines": [], "trouble": "it does not understand the question"}
        )

    nodes.world.answers["b"][USAGE] = say
    sums = await nodes.desks["a"].usage(replace(wish("tenant"), server="s"))
    assert asked[0]["by"] == ["tenant", "tool"]
    assert sums.silent == {"b": "it does not understand the question"}
