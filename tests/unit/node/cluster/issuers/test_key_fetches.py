"""Key fetches: one node asks for all, whoever meets a new key has it at once, and nobody can make them ask often."""

import asyncio
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.key_ports import source_of
from support.access.key_world import CORP, KeyWorld, settled

OTHER = b'{"keys":[{"kid":"new","kty":"RSA"}]}'


async def test_at_the_start_one_node_fetches_and_all_have_the_keys() -> None:
    world = KeyWorld()
    async with world.running():
        assert world.issuer.asked == 1
        assert {name: world.document(name) for name in "abc"} == dict.fromkeys(
            "abc", b'{"keys":[]}'
        )
        held = world.states["b"].keys.get("corp", "https://sso.example")
        assert held is not None
        assert (held.node, held.source) == (world.first, "https://sso.example")
        assert world.fetches[world.first].view("corp").requests == 1


async def test_a_node_that_joins_waits_for_what_the_others_have() -> None:
    world = KeyWorld()
    world.held = False
    async with world.running():
        assert world.issuer.asked == 0


async def test_one_node_refreshes_and_the_next_does_where_that_one_does_not() -> None:
    world = KeyWorld()

    async def minutes_to_the_next() -> int:
        before = world.issuer.asked
        for minute in range(200):
            if world.issuer.asked > before:
                assert world.issuer.asked == before + 1
                return minute
            await world.pass_time(60)
        raise AssertionError

    async with world.running():
        assert 48 <= await minutes_to_the_next() <= 73
        assert world.fetches[world.first].view("corp").requests == 2
        # It hangs: it counts as living for the others, and does nothing.
        hung = world.first
        world.fetches[hung].look = lambda: None  # type: ignore[method-assign]  # it hangs
        assert 48 <= await minutes_to_the_next() <= 75
        assert world.fetches[hung].view("corp").requests <= 3


async def test_a_new_key_met_on_all_nodes_at_once_is_fetched_once() -> None:
    world = KeyWorld()
    async with world.running():
        await world.pass_time(6)
        world.issuer.document = OTHER
        assert await asyncio.gather(*(world.want(name) for name in "abc")) == [True] * 3
        assert world.issuer.asked == 2
        assert [world.document(name) for name in "abc"] == [OTHER] * 3


async def test_those_who_meet_it_meanwhile_wait_for_the_same_fetch() -> None:
    world = KeyWorld()
    async with world.running():
        await world.pass_time(6)
        world.issuer.gate.clear()
        one = world.fetches[world.last].want("corp")
        await settled()
        other = world.fetches[world.last].want("corp")
        assert one is not None
        assert other is one
        assert not one.done()
        world.issuer.gate.set()
        await asyncio.wait_for(asyncio.shield(one), 5)
        assert world.issuer.asked == 2


async def test_an_unknown_key_right_after_a_fetch_causes_none() -> None:
    world = KeyWorld()
    async with world.running():
        assert [await world.want(name) for name in "abc"] == [False] * 3
        assert world.issuer.asked == 1


async def test_invented_keys_on_all_nodes_cause_as_few_requests_as_on_one() -> None:
    world = KeyWorld()
    async with world.running():
        await world.pass_time(6)
        before = world.issuer.asked
        for _ in range(600):
            for name in "abc":
                await world.want(name)
            await world.pass_time(0.1)
        assert world.issuer.asked - before <= 4


async def test_where_the_first_node_does_not_answer_the_issuer_is_asked_all_the_same() -> None:
    world = KeyWorld()
    async with world.running():
        await world.pass_time(6)
        world.silent = {world.first}
        world.issuer.document = OTHER
        assert await world.want(world.last)
        assert world.document(world.last) == OTHER


async def test_a_node_of_an_older_release_is_passed_over() -> None:
    world = KeyWorld()
    world.old = {world.first}
    async with world.running():
        await world.pass_time(6)
        world.issuer.document = OTHER
        assert await world.want(world.last)
        assert world.document(world.last) == OTHER


async def test_an_issuer_that_is_away_is_said_once_and_asked_ever_more_seldom() -> None:
    world = KeyWorld(("a",))
    world.issuer.away = True
    async with world.running():
        for _ in range(120):
            await world.pass_time(1)
        view = world.fetches["a"].view("corp")
        assert (view.requests, view.failures) == (world.issuer.asked, world.issuer.asked)
        assert view.last_error == "it cannot be reached: connection refused"
        assert 5 <= world.issuer.asked <= 8
        world.issuer.away = False
        await world.pass_time(60)
        assert world.document("a") == b'{"keys":[]}'
        assert world.fetches["a"].view("corp").last_error == ""


async def test_keys_stay_while_the_issuer_is_away() -> None:
    world = KeyWorld()
    async with world.running():
        world.issuer.away = True
        await world.pass_time(10_000)
        await world.pass_time(6)
        assert [world.document(name) for name in "abc"] == [b'{"keys":[]}'] * 3
        assert await world.want(world.last)
        assert world.document(world.last) == b'{"keys":[]}'


async def test_keys_of_another_issuer_of_that_name_do_not_count() -> None:
    world = KeyWorld(("a",))
    async with world.running():
        world.issuers = {"corp": Issuer("corp", "https://other.example", ("smg",))}
        await world.pass_time(0.1)
        assert world.issuer.asked == 2
        held = world.states["a"].keys.get("corp", "https://other.example")
        assert held is not None
        assert held.source == "https://other.example"


async def test_nodes_that_fetch_the_keys_of_one_alias_elsewhere_all_have_their_own() -> None:
    world = KeyWorld()
    mirror = replace(CORP, keys_url="https://mirror.example/keys")
    world.others[world.last] = {"corp": mirror}
    async with world.running():
        await world.pass_time(30)
        begun = world.issuer.asked
        for _ in range(500):
            await world.pass_time(20)
            held = [world.held_by(name) for name in "abc"]
            assert all(held)
        # In 10,000 s each source is asked two or three times, whichever nodes go by it: nobody writes over the other's.
        assert 4 <= world.issuer.asked - begun <= 8
        assert world.states["a"].keys.sources("corp") == [source_of(CORP), source_of(mirror)]


async def test_an_issuer_that_is_not_configured_is_not_asked() -> None:
    world = KeyWorld()
    async with world.running():
        assert world.fetches["a"].want("nobody") is None
        world.issuers = {}
        await world.pass_time(10)
        assert world.fetches["a"].want("corp") is None
        world.issuers = {"corp": CORP}


async def test_before_it_runs_nothing_is_promised() -> None:
    world = KeyWorld()
    assert world.fetches["a"].want("corp") is None
    assert world.fetches["a"].view("corp").requests == 0


async def test_garbage_from_another_node_is_answered_and_does_nothing() -> None:
    world = KeyWorld()
    async with world.running():
        asked = world.issuer.asked
        for content in (b"", b"\xc1", b"\x92\xa4corp\xa0", b"\x90"):
            assert b"unknown" in await world.answerers["a"](content, "b")
        assert world.issuer.asked == asked


async def test_keys_that_are_the_same_are_not_written_for_each_who_asks() -> None:
    world = KeyWorld(("a",))
    async with world.running():
        await world.pass_time(6)
        writes = world.shared["a"].writes
        assert await world.want("a")
        assert world.shared["a"].writes == writes
        await world.pass_time(300)
        assert await world.want("a")
        assert world.shared["a"].writes == writes + 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 20), st.booleans(), st.booleans()),
        max_size=60,
    )
)
def test_however_tokens_come_the_issuer_is_asked_seven_times_a_minute_at_most(
    steps: list[tuple[str, float, bool, bool]],
) -> None:
    async def live() -> list[float]:
        world, times = KeyWorld(), []
        async with world.running():
            for number, (name, wait_s, is_new, many) in enumerate(steps):
                await world.pass_time(wait_s)
                if is_new and number % 10 == 0:
                    world.issuer.document = b'{"keys":[%d]}' % number
                before = world.issuer.asked
                for one in "abc" if many else name:
                    await world.want(one)
                times += [world.clock.seconds] * (world.issuer.asked - before)
        return times

    for at in (times := asyncio.run(live())):
        assert sum(at <= other < at + 60 for other in times) <= 7
