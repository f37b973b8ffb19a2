"""Permits between nodes: whatever is lost, repeated, late or forgotten, never more are open than there are."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import LoanMessage, Minted, decode, encode
from smg_mesh.escrow.permits.concurrency_permits import OVER_MS
from smg_mesh.escrow.permits.permit_exchange import Lending
from support.rights.rights_world import Defined
from support.tools.example_counts import example_count

KEY = "tenant=t#concurrent/0"
AMOUNT = 7
NAMES = "abc"
ROSTER = Roster(bytes(16), 1, tuple(NAMES), (3,) * 3, proven=True)


class Node:
    """One machine: its disk, and the life on it."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.disk: dict[tuple[str, int], int] = {}
        self.boot = 0
        self.lending: Lending
        self.begin(founded=True)

    def begin(self, *, founded: bool = False, same: bool = False) -> None:
        before = self.lending if same else None
        self.boot += 10
        limits = Defined(Limit(KEY, "concurrent", AMOUNT, 0, mode="strict"))
        self.lending = Lending(
            Life(self.name, self.boot),
            limits,
            roster=None,
            remembered=dict(self.disk) if before is None else None,
            now_ms=self.world.now_ms,
            wall_ms=self.world.now_ms,
        )
        if founded:
            self.lending.founded()
        if before is not None:
            self.lending.permits.inherit(before.permits)
            self.lending.inherited()
            before.permits.retire()
        self.lending.permits.divide(ROSTER, 3)
        if before is None:
            self.share = self.lending.permits.here(KEY)
            assert self.share is not None

    def open(self) -> int:
        assert self.share is not None
        return self.share.spent

    def ask(self, count: int) -> None:
        self.lending.permits.share(Limit(KEY, "concurrent", AMOUNT, 0, mode="strict"))
        assert self.share is not None
        taken = max(0, min(count, self.share.left))
        self.share.left -= taken
        self.share.spent += taken
        self.share.offered += count
        self.share.wanted = count - taken

    def finish(self, count: int) -> None:
        assert self.share is not None
        done = min(count, self.share.spent)
        self.share.left += done
        self.share.spent -= done


class World:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.packets: list[tuple[str, bytes]] = []
        self.writes: list[tuple[Node, object, Minted]] = []
        self.nodes = {name: Node(self, name) for name in NAMES}
        self.see()

    def see(self) -> None:
        alive = [Life(node.name, node.boot) for node in self.nodes.values()]
        for node in self.nodes.values():
            node.lending.members(alive, now_ms=self.now_ms)
            self.clear(node)

    def clear(self, node: Node) -> None:
        said, rows, _ = node.lending.clear()
        self.packets += [(to, encode([message])[0]) for to, message in said]
        self.writes += [(node, node.lending, row) for row in rows]

    def deliver(self, at: int, *, again: bool) -> None:
        if self.packets:
            to, packet = self.packets[at % len(self.packets)]
            if not again:
                del self.packets[at % len(self.packets)]
            (message,) = decode(packet)
            assert isinstance(message, LoanMessage)
            self.nodes[to].lending.heard(message, now_ms=self.now_ms)
            self.clear(self.nodes[to])

    def write(self, at: int) -> None:
        if self.writes:
            node, lending, row = self.writes.pop(at % len(self.writes))
            if lending is node.lending:
                node.disk[row.key, row.window] = row.total
                node.lending.written([row])
                self.clear(node)

    def tick(self, ms: int) -> None:
        self.now_ms += ms
        for node in self.nodes.values():
            node.lending.tick(now_ms=self.now_ms)
            self.clear(node)

    def calm(self, rounds: int = 40, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(rounds):
            self.tick(25)
            while self.writes:
                self.write(0)
            while self.packets:
                self.deliver(0, again=False)
                while self.writes:
                    self.write(0)
            each()
            self.check()

    def check(self) -> None:
        opened = {name: node.open() for name, node in self.nodes.items()}
        assert sum(opened.values()) <= AMOUNT, opened
        rooms = {
            name: node.lending.permits.room(KEY, fresh=False) for name, node in self.nodes.items()
        }
        assert sum(rooms.values()) <= AMOUNT, rooms


name = st.sampled_from(NAMES)
place = st.integers(0, 50)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), name, st.integers(1, AMOUNT)),
        st.tuples(st.just("ask"), st.just("a"), st.integers(3, AMOUNT)),
        st.tuples(st.just("finish"), name, st.integers(1, 4)),
        st.tuples(st.just("deliver"), place),
        st.tuples(st.just("deliver"), place),
        st.tuples(st.just("again"), place),
        st.tuples(st.just("lose"), place),
        st.tuples(st.just("write"), place),
        st.tuples(st.just("write"), place),
        st.tuples(st.just("tick"), st.sampled_from([1, 25, 30, 300, 1_100, 2_500, 6_000])),
        st.tuples(st.just("calm"), st.integers(1, 8)),
        st.tuples(st.just("restart"), name, st.booleans()),
        st.tuples(st.just("reboot"), name),
        st.tuples(st.just("see")),
    ),
    max_size=60,
)


def do(world: World, what: str, *rest: Any) -> None:
    if what in ("ask", "finish"):
        getattr(world.nodes[rest[0]], what)(rest[1])
    elif what == "deliver":
        world.deliver(rest[0], again=False)
    elif what == "again":
        world.deliver(rest[0], again=True)
    elif what == "lose" and world.packets:
        del world.packets[rest[0] % len(world.packets)]
    elif what == "write":
        world.write(rest[0])
    elif what == "tick":
        world.tick(rest[0])
    elif what == "calm":
        world.calm(rest[0])
    elif what == "restart":
        node = world.nodes[rest[0]]
        if rest[1]:
            node.disk.clear()
        node.begin()
    elif what == "reboot":
        world.nodes[rest[0]].begin(same=True)
    elif what == "see":
        world.see()


def any_step(own: Random) -> tuple[Any, ...]:
    """Draw a step; mostly packets and writes come, in about their order."""
    near = own.choice((0, 0, 0, 1, 2, own.randrange(50)))
    who = own.choice("aaab" + NAMES)
    drawn: tuple[Any, ...] = own.choices(
        (
            ("ask", who, own.randint(1, AMOUNT)),
            ("finish", own.choice(NAMES), own.randint(1, 4)),
            ("deliver", near),
            ("again", near),
            ("lose", near),
            ("write", near),
            ("tick", own.choice((1, 25, 25, 25, 300, 1_100, 6_000))),
            ("restart", own.choice(NAMES), own.random() < 0.5),
            ("reboot", own.choice(NAMES)),
            ("see",),
        ),
        (12, 8, 40, 6, 3, 20, 25, 1, 1, 2),
    )[0]
    return drawn


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 32))
def test_never_more_are_open_than_there_are_in_long_weather(seed: int) -> None:
    own, world = Random(seed), World()
    for _ in range(600):
        do(world, *any_step(own))
        world.check()


@settings(max_examples=example_count(150), deadline=None)
@given(steps)
def test_never_more_are_open_than_there_are(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    world.calm(40, each=lambda: world.nodes["a"].ask(AMOUNT - world.nodes["a"].open()))
    for one in steps:
        do(world, *one)
        world.check()


@settings(max_examples=30, deadline=None)
@given(steps)
def test_whatever_happened_who_is_busy_has_nearly_all_soon(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for one in steps:
        do(world, *one)
    for node in world.nodes.values():
        node.finish(AMOUNT)
        node.ask(0)
    world.see()
    world.calm(300)
    world.calm(120, each=lambda: world.nodes["b"].ask(AMOUNT - world.nodes["b"].open()))
    assert world.nodes["b"].open() == AMOUNT


def test_what_is_not_needed_goes_back_and_nobody_is_woken_any_more() -> None:
    world = World()
    world.calm(200, each=lambda: world.nodes["a"].ask(AMOUNT - world.nodes["a"].open()))
    assert world.nodes["a"].open() == AMOUNT
    world.nodes["a"].finish(AMOUNT)
    world.nodes["a"].ask(0)
    world.calm(300)
    assert [node.lending.permits.loans.lent_of(KEY) for node in world.nodes.values()] == [0, 0, 0]
    assert [node.lending.due_ms() for node in world.nodes.values()] == [None, None, None]
    assert world.nodes["b"].lending.permits.room(KEY) == 2


def test_a_borrower_that_is_silent_keeps_what_it_has_until_all_of_it_must_be_over() -> None:
    world = World()
    world.calm(200, each=lambda: world.nodes["a"].ask(AMOUNT - world.nodes["a"].open()))
    lender, borrower = world.nodes["b"].lending, world.nodes["a"].lending
    lent = lender.permits.loans.lent_of(KEY)
    assert lent > 0
    for _ in range(3):
        world.tick(2_000)
        world.packets.clear()
    assert borrower.permits.room(KEY) == 3
    assert borrower.permits.room(KEY, fresh=False) == AMOUNT
    world.tick(OVER_MS - 8_000)
    world.packets.clear()
    assert lender.permits.loans.lent_of(KEY) == lent
    world.tick(3_000)
    assert lender.permits.loans.lent_of(KEY) == 0
    assert lender.clear() == ([], [], [])
