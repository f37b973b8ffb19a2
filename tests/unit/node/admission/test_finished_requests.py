"""Requests that are over are counted by every limit they met, when somebody looks."""

import pytest

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeMatch, LimitWorld, door_of, limit

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme", key_id="k")


def ticket_of(door: Admission) -> Ticket:
    ticket = door.ticket(CONTEXT, "m")
    assert ticket is not None
    return ticket


async def test_what_is_over_is_counted_under_the_name_its_limit_had() -> None:
    world = LimitWorld()
    door = door_of(world)
    key = world.add(limit(), 9).key
    for scope in ("tenant=acme", "tenant=*", "tenant=*"):
        world.rules.matches[:] = [FakeMatch(key, scope, "requests")]
        world.rules.version += 1
        ticket = ticket_of(door)
        await ticket.enter()
        ticket.settle(0, 0, 0)
    requests, charged = door.tallies.requests(), door.tallies.charged()
    for name, count in (("tenant=acme#requests/minute", 1), ("tenant=*#requests/minute", 2)):
        assert requests[name, "admitted"] == count
        assert charged[name,] == count


@pytest.mark.parametrize("looks", [False, True])
async def test_every_request_is_counted_once_by_each_limit_it_was_charged_to(looks: bool) -> None:
    world = LimitWorld()
    door = door_of(world)
    for unit in ("requests", "concurrent", "tokens"):
        world.add(limit(unit, window_ms=0 if unit == "concurrent" else 60_000), 900)
    for at in range(8):
        ticket = ticket_of(door)
        await ticket.enter()
        if at != 1:
            await ticket.reserve(10, 20)
        if at == 2:
            ticket.void()
        elif at == 3:
            ticket.settle_reserved()
        if at == 4:
            world.rules.version += 1
            assert ticket_of(door) is not None
        for _ in range(2):
            ticket.settle(10, 0, 5)
            if looks:
                assert door.tallies.requests()
    requests, charged = door.tallies.requests(), door.tallies.charged()
    names = ["requests/minute", "concurrent", "tokens/minute"]
    assert [requests[f"tenant=acme#{name}", "admitted"] for name in names] == [7, 7, 6]
    assert [charged[f"tenant=acme#{name}",] for name in names] == [7, 0, 5 * 15 + 30]
