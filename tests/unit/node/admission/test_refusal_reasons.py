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
    ("state", "next_s", "window_ms", "again_s", "why"),
    [
        ("standing", 7.5, 86_400_000, 7.5, "no_owner"),
        ("standing", 0.0, 60_000, 40.0, "no_owner"),
        ("exact", 7.5, 300_000, 7.5, "held_elsewhere"),
    ],
)
async def test_where_a_little_accrues_there_is_more_when_the_next_unit_does(
    state: State, next_s: float, window_ms: int, again_s: float, why: str
) -> None:
    world = LimitWorld()
    share = world.add(limit(window_ms=window_ms), 0, 10)
    share.state = state
    share.next_ms = round(world.wall_ms + 1000 * next_s) if next_s else 0
    error = await refusal_of(world)
    assert not error.hopeless
    assert again_s <= (error.retry_after_s or 0) <= again_s + 1
    headers = error.headers("openai")
    assert (headers["x-smg-limit-reason"], headers["x-smg-limit-state"]) == (why, state)
