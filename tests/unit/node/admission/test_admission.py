import asyncio
from collections.abc import Awaitable

import pytest

from smg_node.admission.admission import Admission, AdmissionOptions
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import (
    FakeShare,
    LimitWorld,
    door_of,
    gives,
    limit,
    whole,
)

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k")


def ticket_of(door: Admission, model: str = "m") -> Ticket:
    ticket = door.ticket(CONTEXT, model)
    assert ticket is not None
    return ticket


async def refused(entering: Awaitable[None]) -> LimitedError:
    with pytest.raises(LimitedError) as caught:
        await entering
    return caught.value


def test_a_request_without_limits_needs_no_ticket() -> None:
    door = door_of(LimitWorld())
    assert door.ticket(CONTEXT, "m") is None
    assert door.tallies.open == 0


async def test_a_request_is_charged_once_and_what_is_open_is_given_back() -> None:
    world = LimitWorld()
    door = door_of(world)
    requests = world.add(limit(), 5)
    places = world.add(limit("concurrent", window_ms=0), 2)
    ticket = ticket_of(door)
    await ticket.enter()
    await ticket.reserve(100, 50)
    assert (whole(requests), whole(places)) == ((4, 1), (1, 1))
    assert not ticket.metered
    assert door.tallies.open == 1
    ticket.settle(100, 0, 20)
    ticket.void()
    ticket.settle(100, 0, 20)
    assert (whole(requests), whole(places)) == ((4, 1), (2, 0))
    assert door.tallies.open == 0


async def test_a_request_that_was_never_worked_on_gets_everything_back() -> None:
    world = LimitWorld()
    door = door_of(world)
    shares = [world.add(limit(), 5), world.add(limit("tokens"), 1_000)]
    ticket = ticket_of(door)
    await ticket.enter()
    await ticket.reserve(100, 50)
    assert [whole(share) for share in shares] == [(4, 1), (850, 150)]
    ticket.void()
    ticket.settle(100, 0, 50)
    assert [whole(share) for share in shares] == [(5, 0), (1_000, 0)]


async def test_a_refusal_charges_nothing_and_says_when_to_come_again() -> None:
    world = LimitWorld()
    door = door_of(world)
    world.add(limit(scope=""), 5)
    empty = world.add(limit(), 0, 10)
    ticket = ticket_of(door)
    error = await refused(ticket.enter())
    ticket.void()
    assert whole(world.rights.shares["#requests/60000"]) == (5, 0)
    assert empty.offered == 1
    assert not world.rights.waited, "the owner said that there is nothing"
    assert (error.status, error.code, error.where) == (
        429,
        "rate_limit_exceeded",
        "requests/minute",
    )
    assert error.message == (
        "the limit of tenant=acme is used up: 10 requests per minute; there is more in 40s"
    )
    assert 40 <= (error.retry_after_s or 0) <= 41
    headers = error.headers("openai")
    assert headers["x-smg-limit-reason"] == "used_up"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert headers["x-ratelimit-limit-requests"] == "10"
    assert headers["x-smg-limit"] == "tenant=acme#requests/minute"
    assert not error.hopeless
    assert door.tallies.open == 0
    assert door.tallies.requests()["tenant=acme#requests/minute", "refused"] == 1


async def test_a_refusal_for_tokens_gives_the_request_back_and_what_is_open() -> None:
    world = LimitWorld()
    door = door_of(world)
    requests, places = world.add(limit(), 5), world.add(limit("concurrent", window_ms=0), 2)
    small, tokens = world.add(limit("input_tokens"), 500), world.add(limit("tokens"), 90, 1_000)
    ticket = ticket_of(door)
    await ticket.enter()
    error = await refused(ticket.reserve(80, 20))
    assert [whole(share) for share in (requests, places, small, tokens)] == [
        (5, 0),
        (2, 0),
        (500, 0),
        (90, 0),
    ]
    assert error.where == "tokens/minute"
    assert error.headers("openai")["x-ratelimit-remaining-tokens"] == "0"
    assert tokens.offered == 100
    assert door.tallies.open == 0


async def test_budgets_of_an_hour_and_more_are_quotas() -> None:
    world = LimitWorld()
    world.add(limit(window_ms=86_400_000), 0, 10)
    error = await refused(ticket_of(door_of(world)).enter())
    assert (error.code, error.where, error.hopeless) == (
        "insufficient_quota",
        "requests/day",
        True,
    )


async def test_what_could_never_fit_is_refused_as_such_and_says_what_is_left() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 700, 1_000)
    share.pool = 300
    ticket = ticket_of(door_of(world))
    await ticket.enter()
    error = await refused(ticket.reserve(1_001, 0))
    assert error.hopeless
    assert error.message == (
        "the request needs 1001 tokens; the limit of tenant=acme is 1000 tokens per minute"
    )
    assert error.headers("openai")["x-ratelimit-remaining-tokens"] == "1000"
    assert not world.rights.waited


async def test_where_too_many_are_open_nobody_knows_when_one_ends() -> None:
    world = LimitWorld()
    world.add(limit("concurrent", scope="", window_ms=0), 0, 8)
    error = await refused(ticket_of(door_of(world)).enter())
    assert error.message == (
        "as many requests are open as the limit of this cluster allows: 8 requests at a time"
    )
    assert error.where == "concurrent"
    assert error.retry_after_s is not None
    assert 1 <= error.retry_after_s <= 2


# ── Waiting ──────────────────────────────────────────────────────────────────


async def test_a_request_waits_for_rights_that_may_be_on_their_way() -> None:
    world = LimitWorld()
    door = door_of(world)
    share = world.add(limit(), 0, 10)
    share.pool = 4
    world.rights.refill = gives(world, 1)
    ticket = ticket_of(door)
    await ticket.enter()
    assert world.rights.waited == [(share.key, 1, 1.4)]
    assert (whole(share), share.offered) == ((0, 1), 1)
    assert door.tallies.requests()["tenant=acme#requests/minute", "waited"] == 1


async def test_it_waits_again_where_somebody_else_was_faster_but_not_for_ever() -> None:
    world = LimitWorld()
    share = world.add(limit(), 0, 10)
    share.pool = 5
    world.rights.refill = gives(world, 0, 0, 0, 0, 0, 0, after_s=0.25)
    await refused(ticket_of(door_of(world)).enter())
    waited = [round(within_s, 3) for _, _, within_s in world.rights.waited]
    assert waited == [1.4, 1.15, 0.9, 0.65, 0.4, 0.15]


@pytest.mark.parametrize(
    ("state", "waits_s"), [("exact", 1.3), ("standing", 1.3), ("borrowed", 0.06)]
)
async def test_where_an_owner_is_still_sought_it_waits_until_there_is_one(
    state: str, waits_s: float
) -> None:
    world = LimitWorld()
    share = world.add(limit(), 0, 10)
    share.pool, share.state = -1, state  # type: ignore[assignment]  # one of the states
    world.rights.refill = gives(world, 1, after_s=0.02)
    await ticket_of(door_of(world)).enter()
    assert [round(within_s, 3) for _, _, within_s in world.rights.waited] == [waits_s]


async def test_when_there_is_an_owner_it_waits_a_round_trip_more() -> None:
    world = LimitWorld()
    share = world.add(limit(), 0, 10)
    share.pool = -1

    async def refill(*_: object) -> bool:
        world.now_s += 0.4
        share.pool = 5
        return True

    world.rights.refill = refill
    await refused(ticket_of(door_of(world)).enter())
    waited = [round(within_s, 3) for _, _, within_s in world.rights.waited]
    assert waited == [1.3, 1.0, 0.6, 0.2]


async def test_where_the_owner_has_plenty_a_busy_moment_refuses_nobody() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 0, 1_000_000)
    share.pool = 900_000
    world.rights.refill = gives(world, 0, 0, 0, 9_000, after_s=0.2)
    ticket = ticket_of(door_of(world))
    await ticket.enter()
    await ticket.reserve(8_000, 100)
    assert [round(within_s, 3) for _, _, within_s in world.rights.waited] == [1.4, 1.2, 1.0, 0.8]
    assert whole(share) == (900, 8_100)


@pytest.mark.parametrize(("pool", "waited_s"), [(1, [1.4, 0.7]), (0, [])])
async def test_not_even_there_it_waits_for_ever(pool: int, waited_s: list[float]) -> None:
    world = LimitWorld()
    world.add(limit(), 0, 1_000).pool = pool
    world.rights.refill = gives(world, 0, 0, 0, after_s=0.7)
    await refused(ticket_of(door_of(world)).enter())
    assert [round(within_s, 3) for _, _, within_s in world.rights.waited] == waited_s


async def test_it_waits_for_one_limit_after_the_other() -> None:
    world = LimitWorld()
    one, two = world.add(limit(scope=""), 0, 10), world.add(limit(), 0, 10)
    one.pool = two.pool = 5
    world.rights.refill = gives(world, 1, 1)
    ticket = ticket_of(door_of(world))
    await ticket.enter()
    assert [key for key, _, _ in world.rights.waited] == [one.key, two.key]
    assert (whole(one), whole(two)) == ((0, 1), (0, 1))


async def test_with_no_time_to_wait_nobody_waits() -> None:
    world = LimitWorld()
    door = door_of(world)
    door.retune(AdmissionOptions(wait_max_s=0.0))
    world.add(limit(), 0, 10).pool = 5
    await refused(ticket_of(door).enter())
    assert not world.rights.waited


async def test_a_share_that_slept_wakes_up_without_a_wait() -> None:
    world = LimitWorld()
    old = world.add(limit(), 0, 10)
    ticket = ticket_of(door_of(world))
    old.window = -1
    world.rights.shares[old.key] = FakeShare(old.key, 3, 10)
    await ticket.enter()
    assert whole(world.rights.shares[old.key]) == (2, 1)
    assert not world.rights.waited


async def test_a_client_that_leaves_while_it_waits_is_charged_nothing() -> None:
    world = LimitWorld()
    door = door_of(world)
    requests = world.add(limit(), 5)
    tokens = world.add(limit("tokens"), 0, 1_000)
    tokens.pool = 500
    begun = asyncio.Event()

    async def forever(share: FakeShare, cost: int, within_s: float) -> bool:
        begun.set()
        await asyncio.Event().wait()
        return True

    world.rights.refill = forever
    ticket = ticket_of(door)
    await ticket.enter()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ticket.reserve(10, 10))
        await begun.wait()
        task.cancel()
    assert (whole(requests), whole(tokens)) == ((5, 0), (0, 0))
    assert door.tallies.open == 0


async def test_a_limit_that_vanishes_meanwhile_does_not_count_and_the_others_do() -> None:
    world = LimitWorld()
    door = door_of(world)
    gone, kept = world.add(limit(), 0, 10), world.add(limit(scope=""), 4)
    gone.pool = 3

    async def vanishes(share: FakeShare, cost: int, within_s: float) -> bool:
        world.rules.matches = [match for match in world.rules.matches if match.key != gone.key]
        world.rules.version += 1
        del world.rights.shares[gone.key]
        return True

    world.rights.refill = vanishes
    ticket = ticket_of(door)
    await ticket.enter()
    assert (whole(gone), whole(kept)) == ((0, 0), (3, 1))
    ticket.void()
    assert whole(kept) == (4, 0)


async def test_a_limit_on_tokens_that_is_set_while_a_request_waits_counts_its_tokens() -> None:
    world = LimitWorld()
    door = door_of(world)
    gone = world.add(limit(), 0, 10)
    gone.pool = 3
    tokens: list[FakeShare] = []

    async def changes(share: FakeShare, cost: int, within_s: float) -> bool:
        world.rules.matches.clear()
        del world.rights.shares[gone.key]
        tokens.append(world.add(limit("tokens", reserve="worst_case"), 1_000))
        return True

    world.rights.refill = changes
    ticket = ticket_of(door)
    assert not ticket.metered
    await ticket.enter()
    assert ticket.metered
    assert ticket.worst_case
    await ticket.reserve(10, 40)
    assert whole(tokens[0]) == (950, 50)
    ticket.settle(10, 0, 15)
    assert whole(tokens[0]) == (975, 25)


async def test_when_the_last_limit_vanishes_the_request_goes_on_unlimited() -> None:
    world = LimitWorld()
    door = door_of(world)
    share = world.add(limit("tokens"), 0, 1_000)
    share.pool = 5

    async def vanishes(share: FakeShare, cost: int, within_s: float) -> bool:
        world.rules.matches.clear()
        world.rules.version += 1
        world.rights.shares.clear()
        return True

    world.rights.refill = vanishes
    ticket = ticket_of(door)
    await ticket.enter()
    await ticket.reserve(10, 10)
    assert ticket.streamed(10, 500)
    ticket.settle(10, 0, 500)
    assert (whole(share), share.debt) == ((0, 0), 0)
    assert ticket.headers("openai") == {}
