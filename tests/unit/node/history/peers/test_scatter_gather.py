"""What is of no thread: lists of a person, figures of a tenant, keys of a client's choice."""

from collections.abc import Sequence

import msgspec
import pytest

from smg_node.history.errors import HolderAwayError
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    Idempotency,
    KeyState,
    PageAsk,
    Turn,
)
from support.history.peer_histories import ACCESS, SHORT, HeldNode, Three, three_nodes


@pytest.fixture
def three() -> Three:
    return three_nodes()


# ── Of a person ──────────────────────────────────────────────────────────────


async def listed(node: HeldNode, limit: int, *, newest_first: bool) -> Sequence[str]:
    found: list[str] = []
    after = ""
    while True:
        ask = PageAsk(limit=limit, after=after, newest_first=newest_first)
        page = await node.holders.list_identifier_responses(ACCESS, "p", ask)
        assert len(page.responses) <= limit
        found += [one.id for one in page.responses]
        if not page.has_more:
            return found
        after = found[-1]


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
async def test_a_persons_responses_are_listed_from_all_nodes(three: Three, limit: int) -> None:
    made = []
    for number, name in enumerate("abcacbbbaac"):
        if number % 3:
            three.clock.advance_s(1)
        made.append(three.response(name, safety_identifier="p"))
        await three.a.holders.store_response(ACCESS, made[-1])
    await three.a.holders.store_response(ACCESS, three.response("b", safety_identifier="q"))
    in_order = [one.id for one in sorted(made, key=lambda one: (one.created_us, one.id))]
    for node in (three.a, three.b, three.c):
        assert await listed(node, limit, newest_first=False) == in_order
        assert await listed(node, limit, newest_first=True) == in_order[::-1]


async def test_a_person_is_forgotten_everywhere_or_it_is_said_where_not(three: Three) -> None:
    for node in "abc":
        await three.a.holders.store_response(ACCESS, three.response(node, safety_identifier="p"))
    three.net.states["c"] = "dead"
    with pytest.raises(HolderAwayError, match="c, which"):
        await three.a.holders.delete_identifier_responses(ACCESS, "p")
    with pytest.raises(HolderAwayError, match="c, which"):
        await listed(three.a, 5, newest_first=True)
    three.net.states["c"] = "alive"
    assert await three.b.holders.delete_identifier_responses(ACCESS, "p") >= 1
    assert await listed(three.a, 5, newest_first=True) == []


async def test_a_page_after_what_is_not_there_is_refused(three: Three) -> None:
    other = three.response("b", safety_identifier="q")
    await three.a.holders.store_response(ACCESS, other)
    for after in (other.id, three.id("resp", "c"), "resp_x"):
        with pytest.raises(StoreError) as caught:
            await three.a.holders.list_identifier_responses(ACCESS, "p", PageAsk(after=after))
        assert (caught.value.kind, caught.value.missing) == (StoreErrorKind.BAD_REFERENCE, after)


async def test_what_a_tenant_has_is_what_it_has_on_all_nodes(three: Three) -> None:
    for node in "abbc":
        await three.a.holders.store_response(ACCESS, three.response(node))
    assert (await three.a.holders.tenant_figures(ACCESS)).responses == 4
    three.net.states["b"] = "dead"
    assert (await three.a.holders.tenant_figures(ACCESS)).responses == 2


# ── Keys ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", [str(number) for number in range(6)])
async def test_a_key_is_the_same_on_all_nodes(three: Three, word: str) -> None:
    key = Idempotency(word, bytes(16), three.clock.now_us + 60_000_000)
    response = three.response("b")

    async def reserved(node: HeldNode, digest: bytes = bytes(16)) -> tuple[KeyState, str]:
        asked = msgspec.structs.replace(key, digest=digest)
        other = three.id("resp", node.name)
        found = await node.holders.reserve_key(ACCESS, asked, other, now_us=three.clock.now_us)
        return found.state, found.response_id

    first = await three.c.holders.reserve_key(ACCESS, key, response.id, now_us=three.clock.now_us)
    assert first.state is KeyState.NEW
    for node in (three.a, three.b, three.c):
        assert await reserved(node) == (KeyState.SAME, "")
        assert await reserved(node, bytes(15) + b"1") == (KeyState.DIFFERENT, "")
    await three.a.holders.commit(ACCESS, Turn(response=response, idempotency=key))
    for node in (three.a, three.b, three.c):
        assert await reserved(node) == (KeyState.SAME, response.id)
        assert await node.holders.get_response(ACCESS, response.id) == response
    await three.a.holders.release_key(ACCESS, word, response.id)
    assert (await reserved(three.b))[0] is KeyState.NEW


async def test_a_turn_is_kept_also_where_its_key_cannot_be_noted(three: Three) -> None:
    words = [str(number) for number in range(30)]
    word = next(one for one in words if three.a.roster.home_of_key("acme", one) == "c")
    three.net.states["c"] = "dead"
    key = Idempotency(word, bytes(16), three.clock.now_us + 60_000_000)
    for commit in (three.a.holders.commit, three.a.holders.write, three.a.holders.commit_turn):
        response = three.response("b")
        await commit(SHORT, Turn(response=response, idempotency=key))
        assert await three.b.own.get_response(ACCESS, response.id) == response
        await three.b.own.release_key(ACCESS, word, response.id)
