"""Further generations of one request: charged for what is open at a time and for tokens, and counted once."""

import pytest
from msgspec.structs import replace

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import LimitWorld, door_of, limit

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k")
FURTHER = replace(CONTEXT, goes_on=True)


@pytest.mark.parametrize("end", ["settle", "void"])
async def test_a_request_is_one_however_often_it_generates(end: str) -> None:
    world = LimitWorld()
    door = door_of(world)
    asked = world.add(limit("requests"), 1)
    opened = world.add(limit("concurrent", window_ms=0), 2)
    tokens = world.add(limit("tokens"), 1000)
    for context in (CONTEXT, FURTHER, FURTHER):
        ticket = door.ticket(context, "m")
        assert ticket is not None
        await ticket.enter()
        assert opened.left == 1
        await ticket.reserve(10, 20)
        if end == "settle" or context is CONTEXT:
            ticket.settle(10, 0, 5)
        else:
            ticket.void()
        assert (asked.left, opened.left) == (0, 2)
    assert tokens.left == 1000 - 15 * (3 if end == "settle" else 1)
    assert door.tallies.requests()["tenant=acme#requests/minute", "admitted"] == 1
    another = door.ticket(CONTEXT, "m")
    assert another is not None
    with pytest.raises(LimitedError):
        await another.enter()


async def test_what_is_open_at_a_time_counts_every_generation() -> None:
    world = LimitWorld()
    door = door_of(world)
    world.add(limit("requests"), 5)
    world.add(limit("concurrent", window_ms=0), 1)
    first, further = door.ticket(CONTEXT, "m"), door.ticket(FURTHER, "m")
    assert first is not None
    assert further is not None
    await first.enter()
    with pytest.raises(LimitedError):
        await further.enter()
    first.settle(0, 0, 0)
    await further.enter()
    further.void()
