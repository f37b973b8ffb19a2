"""Whoever knows all that a node knows leaves room for what that node may go by, whatever was written in between."""

from typing import get_args

from hypothesis import example, given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Limit, Roster, Unit
from smg_mesh.state.limits.limit_parser import TOOL_UNITS
from smg_mesh.state.limits.limit_rule import Amount, LimitRule, limit_key, read_record, write_record
from smg_mesh.state.limits.limit_scope import Scope, is_instance, patterns, read_scope
from smg_mesh.state.limits.limit_window import WINDOW_MS_MAX
from smg_mesh.state.limits.limits_view import LimitsView
from smg_mesh.state.limits.older_amounts import fewer
from support.state.fake_namespace import FakeNamespaces
from support.tools.example_counts import example_count

KEY = "tenant=t#requests/1000"
SCOPES = ("t", "*")

writes = st.tuples(
    st.just("write"),
    st.sampled_from("ab"),
    st.sampled_from(SCOPES),
    st.integers(0, 1_000),
    st.sampled_from((0.0, 0.25, 0.5, 1.0)),
)
removals = st.tuples(st.just("remove"), st.sampled_from("ab"), st.sampled_from(SCOPES))
links = st.tuples(st.just("link"), st.sampled_from(("a|b|x", "ab|x", "abx", "a|bx", "b|ax")))
waits = st.tuples(st.just("wait"), st.integers(1, 3_000_000))
steps = st.lists(st.one_of(writes, removals, links, waits), max_size=24)


def views_of(world: FakeNamespaces) -> dict[str, LimitsView]:
    # Long memory: here nothing is ever too old to matter.
    def wall_ms(name: str) -> int:
        return world[name].wall_ms

    return {
        name: LimitsView(world[name], wall_ms=lambda name=name: wall_ms(name), keep_ms=10**12)  # type: ignore[misc]  # bound now
        for name in "abx"
    }


def knows(world: FakeNamespaces, who: str, of: str) -> bool:
    """Whether `who` has heard of every write that `of` has, or of a later one of the same owner."""
    mine = {(key, owner): cell.stamp for key, owner, cell in world[who].everything()}
    return all(
        mine.get((key, owner), (0, 0)) >= cell.stamp for key, owner, cell in world[of].everything()
    )


def covers(owner: Limit, other: Limit, names: int) -> bool:
    rights = [owner.standing_right(names)]
    rights += [int(standing * amount / names) for amount, standing in owner.older]
    return max(rights) >= other.standing_right(names)


def has_room(here: Limit, owner: Limit, names: int) -> bool:
    """Whether what stands by one version and what an owner by another one mints is no more than the larger amount."""
    members = tuple(f"n{number}" for number in range(names))
    roster = Roster(b"r" * 16, 1, members, (names,) * names)
    minted = owner.mintable(roster, members, began_ms=0)
    stands = names * here.standing_right(names, began_ms=0)
    return minted + stands <= max(here.amount, owner.amount, *largest(here), *largest(owner))


def largest(limit: Limit) -> list[int]:
    """Return the amounts of versions that some owner may still go by."""
    return [0, *(amount for amount, _, _ in limit.minted_before)]


def relink(world: FakeNamespaces, sides: str) -> None:
    world.heal()
    if "|" in sides:
        world.cut(*sides.split("|"))


REMOVED_TWICE = [
    ("write", "a", "t", 1, 1.0),
    ("link", "a|b|x"),
    ("write", "a", "*", 0, 0.0),
    ("remove", "a", "t"),
    ("remove", "a", "t"),
]
RAISED = [("write", "a", "t", 90, 0.25), ("link", "a|b|x"), ("write", "a", "t", 90, 1.0)]


@settings(max_examples=example_count(300), deadline=None)
@given(steps, st.integers(1, 7))
@example(REMOVED_TWICE, 1)
@example(RAISED, 3)
def test_room_is_left_for_what_others_may_go_by(
    happens: list[tuple[object, ...]], names: int
) -> None:
    world = FakeNamespaces("a", "b", "x", name="limits")
    views = views_of(world)
    for step in happens:
        match step:
            case ("write", str(who), str(tenant), int(amount), float(standing)):
                amounts = (Amount("requests", amount, 1_000),)
                rule = LimitRule(tenant=tenant, amounts=amounts, standing=standing)
                views[who].put(rule, version=None)
            case ("remove", str(who), str(tenant)):
                views[who].remove(f"tenant={tenant}", version=None)
            case ("link", str(sides)):
                relink(world, sides)
            case ("wait", int(ms)):
                world.wall_ms += ms
            case _:
                raise AssertionError(step)
        world.wall_ms += 1_000
        for owner in "ab":
            here = views[owner].get(KEY)
            for other in "abx":
                there = views[other].get(KEY)
                if here is not None and there is not None and knows(world, owner, other):
                    assert covers(here, there, names)
                    assert has_room(here, there, names)
    world.heal()
    # What collides with what counts may be noticed a second later.
    world.wall_ms += 1_000
    assert len({views[name].basis() for name in "abx"}) == 1
    found = {views[name].get(KEY) for name in "abx"}
    assert len(found) == 1
    (limit,) = found
    matched = {one.key for name in "abx" for one in views[name].matching("t", "", "m")}
    assert matched == ({KEY} if limit is not None else set())


@settings(max_examples=example_count(300), deadline=None)
@given(st.text(), st.text(), st.text())
@example("t" * 99, "k" * 99, "m" * 99)
@example("t" * 99, "k", "m" * 99)
def test_any_text_is_a_scope_or_says_why_not(tenant: str, key: str, model: str) -> None:
    for text in (
        tenant,
        f"tenant={tenant}",
        f"tenant={tenant},key={key},model={model}",
        f"tool={key}/{model}",
        f"tool={key}/{model},tenant={tenant},model={model}",
    ):
        try:
            scope = read_scope(text)
        except ValueError:
            continue
        assert read_scope(scope.text).text == scope.text
        assert scope.text.isascii()
        assert not set(scope.text) & set("# \x1f")
        # The word "tool" is one letter longer than "key", and what is counted of runs is said in shorter words.
        of_tool = bool(scope.tool)
        assert len(scope.text) <= (128 if of_tool else 127)
        for unit in TOOL_UNITS if of_tool else get_args(Unit):
            assert len(limit_key(scope.text, unit, WINDOW_MS_MAX)) <= 152


names = st.one_of(st.text(min_size=1, max_size=256).filter(lambda name: name != "*"), st.just(""))


@settings(max_examples=example_count(300), deadline=None)
@given(names, names, names)
def test_a_rule_for_each_speaks_of_everybody_by_name(tenant: str, key: str, model: str) -> None:
    try:
        text = Scope(tenant, key, model).text
    except UnicodeEncodeError:
        return  # lone surrogates never come out of a request
    assert is_instance(text) or not text
    found = list(patterns(text))
    assert found[0] == text
    stars = Scope("*" if tenant else "", "*" if key else "", "*" if model else "").text
    assert found[-1] == stars
    assert len(set(found)) == len(found) == 2 ** len(Scope(tenant, key, model).named)


servers = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


@settings(max_examples=example_count(300), deadline=None)
@given(names, names, servers, names, st.sampled_from(("own", "of all", "of each")))
def test_a_run_meets_what_is_said_of_its_tool(
    tenant: str, model: str, server: str, tool: str, named: str
) -> None:
    world = FakeNamespaces("a", name="limits")
    view = LimitsView(world["a"], wall_ms=lambda: world["a"].wall_ms)
    said = {"own": f"{server}/{tool}", "of all": f"{server}/*", "of each": "*"}[named]
    rule = LimitRule(tenant, "", model, (Amount("requests", 1, 1_000),), tool=said)
    try:
        view.put(rule, version=None)
    except UnicodeEncodeError:
        return  # lone surrogates never come out of a request
    (found,) = view.of_tool(tenant, "k", model, f"{server}/{tool}")
    assert found.scope == rule.scope
    limit = view.get(found.key)
    assert limit is not None
    assert limit.amount == 1
    assert is_instance(found.key.partition("#")[0])
    assert view.matching(tenant, "k", model) == view.of_provider(f"{server}/{tool}") == ()
    assert view.of_tool(tenant, "k", model, f"{server}x/{tool}") == () or named == "of each"


@settings(max_examples=example_count(300), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_none(data: bytes) -> None:
    try:
        record = read_record(data)
    except ValueError:
        return
    again = read_record(write_record(record.rule(), record.older))
    assert again == record
    assert fewer(record.older, since_ms=0) == fewer(fewer(record.older, since_ms=0), since_ms=0)
