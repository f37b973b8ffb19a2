"""Reasons of a 429 and when to come again: used up, held elsewhere, no owner."""

import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ports import State
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import LimitWorld, door_of, limit


def ticket_of(door: Admission) -> Ticket:
    ticket = door.ticket(RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k"), "m")
    assert ticket is not None
    return ticket


async def refusal_of(world: LimitWorld) -> LimitedError:
    with pytest.raises(LimitedError) as caught:
        await ticket_of(door_of(world)).enter()
    return caught.value


async def test_where_the_owner_has_not_spoken_yet_it_is_worth_to_come_again_soon() -> None:
    world = LimitWorld()
    world.add(limit(window_ms=86_400_000), 0, 10).pool = -1
    error = await refusal_of(world)
    assert (error.code, error.hopeless) == ("rate_limit_exceeded", False)
    assert error.retry_after_s is not None
    assert 1 <= error.retry_after_s <= 2
    assert error.message == (
        "this node may not give more now of the limit of tenant=acme: 10 requests per day; "
        "it does not hear the node that shares it out"
    )
    assert error.headers("openai")["x-smg-limit-reason"] == "no_owner"


async def test_what_others_hold_is_not_called_used_up() -> None:
    world = LimitWorld()
    world.add(limit(), 0, 10).pool = 3
    error = await refusal_of(world)
    assert error.message == (
        "other nodes hold what is left now of the limit of tenant=acme: 10 requests per minute"
    )
    headers = error.headers("openai")
    assert headers["x-smg-limit-reason"] == "held_elsewhere"
    assert headers["x-ratelimit-remaining-requests"] == "3", "that is left, though not here"
    assert error.retry_after_s is not None
    assert 1 <= error.retry_after_s <= 2


@pytest.mark.parametrize(
    ("state", "next_s", "window_ms", "again_s", "why", "message"),
    [
        (
            "standing",
            7.5,
            86_400_000,
            7.5,
            "no_owner",
            "this node may not give more now of the limit of tenant=acme: 10 requests per day;"
            " it does not hear the node that shares it out; a little more comes in 8s",
        ),
        (
            "standing",
            0.0,
            60_000,
            40.0,
            "no_owner",
            "this node may not give more now of the limit of tenant=acme: 10 requests per minute;"
            " it does not hear the node that shares it out",
        ),
        (
            "exact",
            7.5,
            300_000,
            7.5,
            "held_elsewhere",
            "nothing is left at this moment of the limit of tenant=acme: 10 requests per 5m;"
            " a little more comes in 8s",
        ),
        (
            "exact",
            0.0,
            60_000,
            40.0,
            "used_up",
            "the limit of tenant=acme is used up: 10 requests per minute; there is more in 40s",
        ),
        (
            "exact",
            50.0,
            60_000,
            40.0,
            "held_elsewhere",
            "nothing is left at this moment of the limit of tenant=acme: 10 requests per minute;"
            " a little more comes in 40s",
        ),
    ],
)
async def test_message_and_time_to_come_again_say_the_same_where_a_little_accrues_before_the_end(
    state: State, next_s: float, window_ms: int, again_s: float, why: str, message: str
) -> None:
    world = LimitWorld()
    share = world.add(limit(window_ms=window_ms), 0, 10)
    share.state = state
    share.next_ms = round(world.wall_ms + 1000 * next_s) if next_s else 0
    error = await refusal_of(world)
    assert error.message == message
    assert not error.hopeless
    assert again_s <= (error.retry_after_s or 0) <= again_s + 1
    headers = error.headers("openai")
    assert (headers["x-smg-limit-reason"], headers["x-smg-limit-state"]) == (why, state)


@pytest.mark.parametrize(
    ("next_s", "again"),
    [
        (0.0, "there is more in 22h13m40s"),
        (7.5, "a little more comes in 8s, and all of it in 22h13m40s"),
    ],
)
async def test_a_budget_that_is_used_up_is_no_reason_to_wait_though_a_little_accrues(
    next_s: float, again: str
) -> None:
    world = LimitWorld()
    share = world.add(limit(window_ms=86_400_000), 0, 10)
    share.next_ms = round(world.wall_ms + 1000 * next_s) if next_s else 0
    error = await refusal_of(world)
    assert error.message == f"the limit of tenant=acme is used up: 10 requests per day; {again}"
    assert (error.code, error.hopeless) == ("insufficient_quota", True)
    assert error.headers("openai")["x-ratelimit-reset-requests"] == "22h13m40s"
    assert 80_020 <= (error.retry_after_s or 0) <= 80_021
