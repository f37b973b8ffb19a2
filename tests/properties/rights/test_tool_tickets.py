"""Whatever becomes of runs of tools, and in whatever order: what was sent stays spent, what was not goes back, once."""

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.tool_ticket import ToolTicket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit
from support.tools.example_counts import example_count

CALLER = RequestContext("r", 0.0, 600.0, tenant="acme")
PRICES_MICRO = (0, 1, 400, 900)
RUNS, PLACES, MONEY_MICRO = 8, 3, 4_000

steps = st.lists(
    st.tuples(
        st.sampled_from(("enter", "enter", "sent", "settle", "cost", "void", "refill")),
        st.integers(0, 7),
        st.sampled_from(PRICES_MICRO),
    ),
    max_size=60,
)


def text_of(micro: int) -> str:
    return f"0.{micro:06}"


@dataclass
class Run:
    ticket: ToolTicket
    price_micro: int
    sent: bool = False
    over: bool = False


class Scene:
    """Runs of one tool with limits on runs, on what is open at a time and on cost."""

    def __init__(self) -> None:
        world = LimitWorld()
        matches = [limit(unit, scope="tool=s/t") for unit in ("requests", "cost")]
        matches.append(limit("concurrent", scope="tool=s/t", window_ms=0))
        amounts = (RUNS, MONEY_MICRO, PLACES)
        self.runs, self.money, self.places = (
            world.add(match, amount, 1_000_000)
            for match, amount in zip(matches, amounts, strict=True)
        )
        world.rules.tools["s/t"] = matches
        self.given = {id(self.runs): RUNS, id(self.money): MONEY_MICRO}
        self.door = door_of(world)
        self.live: list[Run] = []
        self.spent_runs = self.spent_micro = 0

    async def play(self, step: str, which: int, price_micro: int) -> None:
        if step == "enter":
            ticket = self.door.tool_ticket(CALLER, "m", "s", "t", price=text_of(price_micro))
            assert ticket is not None
            before = self._left()
            if await ticket.enter() is None:
                self.live.append(Run(ticket, price_micro))
            else:
                assert self._left() == before
        elif step == "refill":
            share: FakeShare = (self.runs, self.money)[which % 2]
            more = max(0, which - share.debt)
            share.left += more
            self.given[id(share)] += more
        elif self.live:
            self._go_on(self.live[which % len(self.live)], step, price_micro)

    def _go_on(self, run: Run, step: str, price_micro: int) -> None:
        if step == "sent":
            run.ticket.sent()
            run.sent = True
            return
        cost = run.price_micro
        if step == "void":
            run.ticket.void()
        elif step == "settle":
            run.ticket.settle()
        else:
            cost = min(price_micro, cost)
            run.ticket.settle(text_of(cost))
        if not run.over and (step != "void" or run.sent):
            self.spent_runs += 1
            self.spent_micro += cost
        run.over = True

    def _left(self) -> tuple[int, ...]:
        return self.runs.left, self.money.left, self.places.left

    def check(self) -> None:
        under_way = [run for run in self.live if not run.over]
        held_micro = sum(run.price_micro for run in under_way)
        assert self.runs.spent == self.spent_runs + len(under_way)
        assert self.money.spent == self.spent_micro + held_micro
        assert self.places.spent == len(under_way) <= PLACES
        assert self.places.left == PLACES - len(under_way)
        for share in (self.runs, self.money):
            assert share.left == self.given[id(share)] - share.spent >= 0
            assert share.debt == 0
        assert self.door.tallies.open == len(under_way)


@settings(max_examples=example_count(300), deadline=None)
@given(steps)
def test_what_was_sent_is_spent_once_and_what_was_not_goes_back(
    happens: list[tuple[str, int, int]],
) -> None:
    async def play() -> None:
        scene = Scene()
        for step in happens:
            await scene.play(*step)
            scene.check()

    asyncio.run(play())
