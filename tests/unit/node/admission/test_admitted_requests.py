"""Requests that were let in: reserved, topped up while they go on, and settled."""

from typing import Literal

import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, gives, limit, whole

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k")


def ticket_of(door: Admission) -> Ticket:
    ticket = door.ticket(CONTEXT, "m")
    assert ticket is not None
    return ticket


async def test_an_estimate_is_reserved_and_follows_the_answers() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 100_000)
    door = door_of(world)
    reserved = []
    for _ in range(40):
        ticket = ticket_of(door)
        before = share.left
        await ticket.enter()
        await ticket.reserve(10, 4_000)
        reserved.append(before - share.left)
        ticket.settle(10, 0, 100, complete=True)
    assert reserved[0] == 10 + 256
    assert 110 <= reserved[-1] <= 10 + 112
    short = ticket_of(door)
    before = share.left
    await short.reserve(10, 20)
    assert before - share.left == 30


async def test_several_answers_are_expected_to_be_alike() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 100_000)
    door = door_of(world)
    for _ in range(20):
        ticket = ticket_of(door)
        await ticket.reserve(10, 4_000, answers=4)
        ticket.settle(10, 0, 40, complete=True)
    before = share.left
    await ticket_of(door).reserve(10, 4_000, answers=3)
    assert before - share.left == 10 + 3 * 10


async def test_answers_that_did_not_come_to_their_end_teach_nothing() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 100_000)
    door = door_of(world)
    for cut in (True, False):
        ticket = ticket_of(door)
        await ticket.reserve(10, 4_000)
        ticket.cut = cut
        ticket.settle(10, 0, 3, complete=cut)
    before = share.left
    await ticket_of(door).reserve(10, 4_000)
    assert before - share.left == 10 + 256


@pytest.mark.parametrize(
    ("tokens", "most", "reserve", "watched"),
    [
        (True, 4_000, "estimate", True),
        (True, 257, "estimate", True),
        (True, 256, "estimate", False),
        (True, 8, "estimate", False),
        (True, None, "estimate", True),
        (True, 4_000, "worst_case", False),
        (False, 4_000, "estimate", False),
    ],
)
async def test_who_has_all_that_he_may_need_is_not_watched(
    tokens: bool, most: int | None, reserve: Literal["worst_case", "estimate"], watched: bool
) -> None:
    world = LimitWorld()
    share = world.add(limit("tokens" if tokens else "requests", reserve=reserve), 100_000)
    ticket = ticket_of(door_of(world))
    await ticket.enter()
    await ticket.reserve(10, most)
    assert ticket.watched is watched
    ticket.settle(10, 0, 8)
    assert share.left == 100_000 - (18 if tokens else 1)


async def test_the_worst_case_reserves_all_an_answer_may_have() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", reserve="worst_case"), 100_000)
    ticket = ticket_of(door_of(world))
    assert ticket.worst_case
    await ticket.reserve(1_000, 4_000)
    assert whole(share) == (95_000, 5_000)
    ticket.settle(1_000, 0, 900)
    assert whole(share) == (98_100, 1_900)


async def test_an_answer_of_unknown_length_is_owed_beyond_what_there_is() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 300)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    assert all(ticket.streamed(10, answered) for answered in range(1, 401))
    assert (whole(share), share.debt) == ((0, 300), 110)
    ticket.settle(10, 0, 400)
    assert (whole(share), share.debt) == ((0, 300), 110)


async def test_an_answer_is_to_end_where_nothing_is_left() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", on_exhausted="finish"), 300)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    going_on = [ticket.streamed(10, answered) for answered in range(1, 291)]
    assert going_on == [True] * 289 + [False]
    assert not await ticket.more(10, 290)
    ticket.settle(10, 0, 290)
    assert (whole(share), share.debt) == ((0, 300), 0)


async def test_an_answer_ends_before_a_batch_that_there_is_no_right_to() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", on_exhausted="finish"), 305)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    going_on = [ticket.streamed(10, answered) for answered in (1, 11, 15, *range(25, 286, 10))]
    assert all(going_on)
    assert not ticket.streamed(10, 295)
    assert not await ticket.more(10, 295)
    ticket.settle(10, 0, 295)
    assert (whole(share), share.debt) == ((0, 305), 0)


async def test_answers_learn_of_each_other_how_much_comes_at_once() -> None:
    world = LimitWorld()
    share = world.add(limit("output_tokens", on_exhausted="finish"), 1_000)
    door = door_of(world)
    one, two = ticket_of(door), ticket_of(door)
    for ticket in (one, two):
        await ticket.reserve(10, None)
    assert all(one.streamed(10, answered) for answered in (10, 20, 30))
    share.left = 0
    assert all(two.streamed(10, answered) for answered in range(1, 256 - 9))
    assert not two.streamed(10, 256 - 9)
    one.settle(10, 0, 30)
    two.settle(10, 0, 256 - 9)
    assert not share.debt


async def test_an_answer_reckons_with_its_own_batches_however_large() -> None:
    world = LimitWorld()
    share = world.add(limit("output_tokens", on_exhausted="finish"), 480)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    assert all(ticket.streamed(10, answered) for answered in (100, 200, 300))
    assert not ticket.streamed(10, 400)
    ticket.settle(10, 0, 400)
    assert (whole(share), share.debt) == ((80, 400), 0)


async def test_a_limit_that_lets_answers_owe_is_charged_what_they_have_and_no_more() -> None:
    world = LimitWorld()
    world.add(limit("tokens", on_exhausted="finish"), 10_000)
    owing = world.add(limit("output_tokens"), 256)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    assert all(ticket.streamed(10, answered) for answered in range(10, 261, 10))
    assert owing.debt == 4


async def test_an_answer_that_comes_whole_says_nothing_of_those_that_come_in_pieces() -> None:
    world = LimitWorld()
    share = world.add(limit("output_tokens", on_exhausted="finish"), 1_000)
    door = door_of(world)
    whole_one, other = ticket_of(door), ticket_of(door)
    for ticket in (whole_one, other):
        await ticket.reserve(10, None)
    assert whole_one.streamed(10, 200)
    share.left = 0
    assert all(other.streamed(10, answered) for answered in range(1, 256))
    assert not other.streamed(10, 256)


@pytest.mark.parametrize("reserve", ["worst_case", "estimate"])
async def test_an_answer_that_can_have_all_it_may_is_not_ended_before(
    reserve: Literal["worst_case", "estimate"],
) -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", reserve=reserve, on_exhausted="finish"), 50)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, 40)
    assert all(ticket.streamed(10, answered) for answered in (1, 11, 21, 31, 40))
    ticket.settle(10, 0, 40)
    assert (whole(share), share.debt) == ((0, 50), 0)


async def test_an_answer_waits_where_an_owner_is_sought_as_long_as_a_request_does() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", on_exhausted="finish"), 300, 10_000)
    share.pool = -1
    world.rights.refill = gives(world, 500, after_s=1.1)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    assert not ticket.streamed(10, 291)
    assert await ticket.more(10, 291)
    assert [round(within_s, 3) for _, _, within_s in world.rights.waited] == [1.3]


async def test_an_answer_that_is_to_end_waits_for_rights_first() -> None:
    world = LimitWorld()
    door = door_of(world)
    share = world.add(limit("tokens", on_exhausted="finish"), 300, 10_000)
    share.pool = 4_000
    world.rights.refill = gives(world, 500)
    ticket = ticket_of(door)
    await ticket.reserve(10, None)
    assert not ticket.streamed(10, 291)
    assert await ticket.more(10, 291)
    assert ticket.streamed(10, 400)
    # Nobody came with a request: this is no wait of one, and no refusal.
    assert door.tallies.requests()["tenant=acme#tokens/minute", "waited"] == 0
    ticket.settle(10, 0, 400)
    assert (whole(share), share.debt) == ((390, 410), 0)


async def test_what_nobody_can_know_counts_as_reserved() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 1_000)
    door = door_of(world)
    ticket = ticket_of(door)
    await ticket.reserve(10, 100)
    ticket.settle_reserved()
    ticket.settle_reserved()
    ticket.void()
    assert whole(share) == (890, 110)
    assert door.tallies.charged() == {("tenant=acme#tokens/minute",): 110}
    assert door.tallies.open == 0


async def test_headers_wake_a_share_that_went_to_sleep_meanwhile() -> None:
    world = LimitWorld()
    share = world.add(limit(), 5, 10)
    ticket = ticket_of(door_of(world))
    await ticket.enter()
    share.window, share.left = -1, 0
    world.rights.shares[share.key] = FakeShare(share.key, 7, 10, ends_ms=world.wall_ms + 900)
    headers = ticket.headers("openai")
    assert headers["x-ratelimit-remaining-requests"] == "7"
    assert headers["x-ratelimit-reset-requests"] == "900ms"


async def test_a_long_answer_wakes_a_share_that_fell_asleep_before_anything_is_owed() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens"), 1_000)
    ticket = ticket_of(door_of(world))
    await ticket.reserve(10, None)
    world.rights.sleep(share)
    assert all(ticket.streamed(10, answered) for answered in range(1, 401))
    assert not share.debt
    world.rights.sleep(share)
    ticket.settle(10, 0, 400)
    assert (whole(share), share.debt) == ((590, 410), 0)


async def test_what_was_not_used_goes_back_to_a_share_that_fell_asleep() -> None:
    world = LimitWorld()
    share = world.add(limit("tokens", reserve="worst_case"), 10_000)
    tickets = [ticket_of(door_of(world)) for _ in range(2)]
    for ticket in tickets:
        await ticket.reserve(10, 4_000)
        world.rights.sleep(share)
        world.rights.share(share.key)
    world.rights.sleep(share)
    tickets[0].settle(10, 0, 90)
    world.rights.sleep(share)
    tickets[1].void()
    assert whole(share) == (9_900, 100)
