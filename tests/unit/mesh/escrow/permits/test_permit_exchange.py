"""Permits that move between whole nodes, on virtual time: with their disks, rosters and same-process lives."""

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import (
    LentRow,
    LoanAsk,
    LoanGive,
    LoanLook,
    LoanRow,
    LoanTell,
)
from smg_mesh.escrow.permits.concurrency_permits import Permits
from smg_mesh.escrow.permits.permit_exchange import QUIET_MS, Lending
from smg_mesh.escrow.permits.permit_loans import LENT, WHOLE_KEY
from smg_mesh.escrow.spendable_share import Share
from support.rights.escrow_world import Defined, Node, World

KEY = "tenant=t#concurrent/0"
AMOUNT = 12
LIMIT = Limit(KEY, "concurrent", AMOUNT, 0, mode="strict")
THREE = ("a", "b", "c")


def permits(node: Node) -> Permits:
    return node.core._lending.permits


def share(node: Node) -> Share:
    """Return a share without asking for it, which would tell that somebody needs more."""
    found = permits(node).here(KEY)
    assert found is not None
    return found


def opened(world: World) -> int:
    return sum(share(node).spent for node in world.living())


def busy(world: World, name: str, most: int = AMOUNT) -> None:
    """Ask a node for more than it has, a millisecond long."""
    node = world.nodes[name]
    one = share(node)
    if one.spent < most:
        one.offered += 1
        if one.left > 0:
            one.left -= 1
            one.spent += 1
        else:
            node.core.share(KEY, now_ms=node.now_ms, wall_ms=node.wall_ms)
            node.core.want(one, 1)
            node.plan()
    assert opened(world) <= AMOUNT


def idle(world: World, name: str) -> None:
    one = share(world.nodes[name])
    one.left += one.spent
    one.spent = one.wanted = 0


def lively(*, disks: bool = True) -> World:
    """Return a world in which one node has all."""
    world = World(THREE, Defined(LIMIT), disks=disks)
    world.run(3_000)
    world.run(3_000, lambda: busy(world, "a"))
    assert share(world.nodes["a"]).spent == AMOUNT
    return world


def test_who_is_busy_has_all_and_others_have_their_part_again_as_soon_as_answers_end() -> None:
    world = lively()
    assert [share(world.nodes[name]).left for name in THREE] == [0, 0, 0]
    one = share(world.nodes["a"])

    def both() -> None:
        if world.now_ms % 50 == 0:
            one.left, one.spent = one.left + 1, one.spent - 1
        busy(world, "b", 4)
        busy(world, "a")

    world.run(1_500, both)
    assert share(world.nodes["b"]).spent == 4
    assert one.spent in (AMOUNT - 5, AMOUNT - 4)


def test_what_is_not_needed_goes_back_and_then_nothing_is_said() -> None:
    world = lively()
    for name in THREE:
        idle(world, name)
    world.run(8_000)
    assert [share(world.nodes[name]).left for name in THREE] == [4, 4, 4]
    before = [node.packets for node in world.living()]
    ticks = [node.ticks for node in world.living()]
    world.run(10_000)
    assert all(node.packets - was <= 10 for node, was in zip(world.living(), before, strict=True))
    assert all(node.ticks - was <= 10 for node, was in zip(world.living(), ticks, strict=True))


def test_a_lender_that_restarts_remembers_what_it_lent() -> None:
    world = lively()
    world.restart("b")
    world.run(4_000, lambda: busy(world, "b"))
    assert permits(world.nodes["b"]).loans.lent_of(KEY) == 4
    assert share(world.nodes["b"]).spent == 0


def test_a_lender_that_lost_its_disk_has_nothing_until_all_have_said_what_they_hold() -> None:
    world = lively(disks=False)
    node = world.restart("b")
    assert permits(node).ignorance is not None
    world.cut = lambda one, other: {one, other} == {"b", "c"}
    world.run(4_000, lambda: busy(world, "b"))
    unknown = permits(node).ignorance
    assert unknown is not None
    assert (list(unknown.answered), permits(node).part(KEY)) == (["a"], 0)
    assert not permits(node).settled()
    world.heal()
    world.run(4_000, lambda: busy(world, "b"))
    assert permits(node).part(KEY) == permits(node).loans.lent_of(KEY) == 4
    assert permits(node).settled()


def test_a_borrower_in_a_new_process_says_that_it_has_nothing() -> None:
    world = lively()
    world.restart("a")
    world.run(6_000)
    assert [share(world.nodes[name]).left for name in THREE] == [4, 4, 4]


def test_a_borrower_that_leaves_gives_back_what_is_free() -> None:
    world = lively()
    idle(world, "a")
    node = world.nodes["a"]
    node.perform(node.core.leave(now_ms=node.now_ms, wall_ms=node.wall_ms))
    world.run(500)
    assert [permits(world.nodes[name]).loans.lent_of(KEY) for name in "bc"] == [0, 0]


def test_newcomers_have_no_part_while_somebody_has_more_than_its_own() -> None:
    world = World(THREE, Defined(LIMIT))
    world.run(3_000)
    for name in THREE:
        world.run(30, lambda name=name: busy(world, name, 4))  # type: ignore[misc]  # bound at once
    assert opened(world) == AMOUNT
    world._begin("d")
    world.tell_members()
    world.run(25_000)
    roster = world.nodes["a"].core.roster
    assert roster is not None
    assert (len(roster.names), roster.divisor("d")) == (4, 0)
    assert [share(world.nodes[name]).left for name in ("a", "b", "c", "d")] == [-1, -1, -1, 0]
    for name in THREE:
        one = share(world.nodes[name])
        one.left, one.spent = one.left + 1, one.spent - 1
    world.run(10_000)
    assert share(world.nodes["d"]).left == 3


def test_who_has_all_there_is_to_know_tells_its_disk() -> None:
    world = lively()
    for name in THREE:
        disk = world.disks[name]
        assert disk is not None
        assert disk.minted[WHOLE_KEY, 0] == 1
    disk = world.disks["b"]
    assert disk is not None
    rows = {key: total for (key, _), total in sorted(disk.minted.items()) if key.startswith(LENT)}
    assert rows == {f"{LENT}a\x1f{KEY}": 4}
    roster = world.nodes["a"].core.roster
    assert roster is not None
    assert disk.roster is not None
    assert disk.roster.places in ((), ((1, 3),))


def test_a_disk_that_does_not_write_lends_nothing() -> None:
    world = World(THREE, Defined(LIMIT))
    world.run(3_000)
    for name in "bc":
        disk = world.disks[name]
        assert disk is not None
        disk.full = True
    world.run(2_000, lambda: busy(world, "a"))
    assert share(world.nodes["a"]).spent == 4
    for name in "bc":
        disk = world.disks[name]
        assert disk is not None
        disk.full = False
    world.run(4_000, lambda: busy(world, "a"))
    assert share(world.nodes["a"]).spent == AMOUNT


# ── Words ────────────────────────────────────────────────────────────────────


def lending(mode: str = "strict", names: str = "ab") -> Lending:
    limits = Defined(Limit(KEY, "concurrent", 8, 0, mode=mode))  # type: ignore[arg-type]  # a mode
    one = Lending(
        Life("a", 5), limits, roster=None, remembered={(WHOLE_KEY, 0): 1}, now_ms=0, wall_ms=0
    )
    one.permits.divide(Roster(bytes(16), 1, tuple(names), (len(names),) * len(names)), len(names))
    one.members([Life("a", 5), Life("b", 7)], now_ms=0)
    one.clear()
    return one


def lent(one: Lending, level: int = 0, number: int = 0, wants: int = 4, boot: int = 7) -> None:
    row = LoanRow(KEY, number, level, wants)
    one.heard(LoanAsk("b", boot, 5, (row,)), now_ms=10)


def test_half_of_what_is_free_is_lent_once_it_is_on_disk() -> None:
    one = lending()
    lent(one)
    said, rows, _ = one.clear()
    assert (said, [row.total for row in rows]) == ([], [2])
    lent(one)
    assert one.clear() == ([], [], [])
    one.written(rows)
    give = LoanGive("a", 5, 7, (LentRow(KEY, 1, 2, 2, 2),))
    assert one.clear() == ([("b", give)], [], [])


def test_what_is_held_of_others_is_not_said_to_be_free_since_it_is_not_lent_on() -> None:
    one = lending(names="abc")
    one.permits.loans.held_from(KEY, "c").take(1, 2)
    for number in range(2):
        lent(one, number=number, level=(0, 2)[number])
        one.written(one.clear()[1])
    assert one.clear()[0] == [("b", LoanGive("a", 5, 7, (LentRow(KEY, 2, 3, 3, 0),)))]
    found = one.permits.here(KEY)
    assert found is not None
    assert (found.left, one.permits.part(KEY)) == (2, 3)


def test_nothing_is_lent_to_who_is_not_in_the_roster_or_of_a_life_that_is_over() -> None:
    one = lending()
    one.heard(LoanAsk("x", 3, 5, (LoanRow(KEY, 0, 0, 4),)), now_ms=10)
    lent(one, boot=6)
    assert one.clear()[1] == []
    assert one.permits.loans.lent_of(KEY) == 0


def test_who_has_not_heard_of_this_life_is_told_of_it_first() -> None:
    one = lending()
    one.heard(LoanAsk("b", 7, 4, (LoanRow(KEY, 3, 3, 1),)), now_ms=10)
    give = LoanGive("a", 5, 0, (LentRow(KEY, 0, 0, 0, 0),))
    assert one.clear() == ([("b", give)], [], [])
    assert one.permits.loans.lent_of(KEY) == 0
    one.heard(LoanAsk("b", 7, 6, (LoanRow(KEY, 3, 3, 1),)), now_ms=10)
    assert one.clear() == ([], [], [])


def test_what_another_life_is_given_is_not_taken_but_answered() -> None:
    one = lending()
    one.heard(LoanGive("b", 7, 4, (LentRow(KEY, 3, 3, 3, 0),)), now_ms=10)
    assert one.clear()[0] == [("b", LoanAsk("a", 5, 7, (LoanRow(KEY, 0, 0),)))]
    one.heard(LoanGive("b", 6, 5, (LentRow(KEY, 3, 3, 3, 0),)), now_ms=10)
    assert (one.clear(), one.permits.room(KEY)) == (([], [], []), 4)
    one.heard(LoanGive("b", 7, 5, (LentRow(KEY, 3, 3, 3, 0),)), now_ms=10)
    assert (one.clear(), one.permits.room(KEY)) == (([], [], []), 7)


def test_what_is_held_is_told_page_by_page() -> None:
    one = lending()
    keys = [f"tenant={number}#concurrent/0" for number in range(6)]
    for key in keys:
        one.permits.loans.held_from(key, "b").take(2, 1)
    one.heard(LoanLook("b", 8), now_ms=10)
    ((to, tell),) = one.clear()[0]
    assert to == "b"
    rows = tuple(LoanRow(key, 0, 1) for key in keys[:4])
    assert tell == LoanTell("a", 5, 8, 2, "", more=True, rows=rows)
    one.heard(LoanLook("b", 8, keys[3]), now_ms=10)
    ((_, tell),) = one.clear()[0]
    assert isinstance(tell, LoanTell)
    assert ([row.key for row in tell.rows], tell.more) == (keys[4:], False)


def test_by_the_mode_what_a_silent_name_has_is_lent_once_more() -> None:
    for mode, alive, after_ms in (
        ("available", True, 5_000),
        ("balanced", False, 5_000),
        ("balanced", True, None),
        ("strict", False, None),
    ):
        one = lending(mode)
        lent(one)
        one.written(one.clear()[1])
        if not alive:
            one.members([Life("a", 5)], now_ms=10)
        taken = []
        for now_ms in range(100, QUIET_MS, 5_000):
            one.tick(now_ms=now_ms)
            taken += [now_ms for _ in one.clear()[2]]
        assert bool(taken) is (after_ms is not None), (mode, alive)
        assert one.permits.loans.lent_of(KEY) == (2 if after_ms is None else 0)
        if after_ms is not None:
            assert taken[0] - 10 >= after_ms
