"""Whatever becomes of requests, and in whatever order: what they were charged is what they used, once."""

import asyncio
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.limit_errors import LimitedError
from smg_node.admission.ticket import Ticket
from smg_node.core.request_context import RequestContext
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit
from support.tools.example_counts import example_count

CONTEXT = RequestContext("r", 0.0, 600.0, tenant="acme")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "open",
                "open",
                "stream",
                "stream",
                "settle",
                "void",
                "unknown",
                "refill",
                "roll",
                "swap",
            ]
        ),
        st.integers(0, 7),
        st.integers(0, 900),
    ),
    max_size=60,
)


class Request:
    """One request, and how many tokens its answer has."""

    def __init__(self, ticket: Ticket, prompt: int) -> None:
        self.ticket = ticket
        self.prompt = prompt
        self.answered = 0
        self.ended = False


class Scene:
    """Requests of one kind that come and go, and all that was ever given to their limits."""

    def __init__(
        self, reserve: Literal["worst_case", "estimate"], on_exhausted: Literal["debt", "finish"]
    ) -> None:
        self.world = LimitWorld()
        tokens = limit("tokens", reserve=reserve, on_exhausted=on_exhausted)
        self.requests = self.world.add(limit(), 20)
        self.prompts = self.world.add(limit("input_tokens", reserve=reserve), 1_500, 100_000)
        self.tokens = self.world.add(tokens, 2_000, 100_000)
        self.places = self.world.add(limit("concurrent", window_ms=0), 4)
        self.given: dict[int, int] = {
            id(self.requests): 20,
            id(self.prompts): 1_500,
            id(self.tokens): 2_000,
        }
        self.door = door_of(self.world)
        self.open: list[Request] = []
        self.exact = True
        """Whether there was only one window, so that whatever goes back can be used."""
        self.used = 0
        self.asked = 0
        """Tokens of prompts among those used."""

    async def play(self, step: str, which: int, amount: int) -> None:
        if step == "open":
            await self._open(amount)
        elif step == "refill":
            share = (self.requests, self.tokens, self.prompts)[which % 3]
            share.left += amount
            self.given[id(share)] += amount
        elif step == "roll":
            self._roll(amount)
        elif step == "swap":
            self._swap(amount)
        elif self.open:
            await self._go_on(self.open[which % len(self.open)], step, amount)

    async def _open(self, prompt: int) -> None:
        ticket = self.door.ticket(CONTEXT, "m")
        assert ticket is not None
        before = [(share.left, share.spent) for share in self._shares()]
        try:
            await ticket.enter()
            await ticket.reserve(prompt, 2 * prompt + 1, answers=1 + prompt % 3)
        except LimitedError:
            assert before == [(share.left, share.spent) for share in self._shares()]
            ticket.void()
            return
        self.open.append(Request(ticket, prompt))

    async def _go_on(self, request: Request, step: str, amount: int) -> None:
        ticket = request.ticket
        if step == "stream":
            request.answered += amount
            if not ticket.streamed(request.prompt, request.answered):
                assert not await ticket.more(request.prompt, request.answered)
            return
        self.open.remove(request)
        if step == "settle":
            self.used += request.prompt + request.answered
            self.asked += request.prompt
        else:
            self.exact = self.exact and step == "void" and not request.answered
        for end in ("settle", "void", "unknown") if amount % 2 else (step,) * 2:
            # The first one counts, whatever is tried after it.
            self._end(request, step if not request.ended else end)
            request.ended = True

    def _end(self, request: Request, how: str) -> None:
        if how == "settle":
            request.ticket.settle(request.prompt, 0, request.answered, complete=True)
        elif how == "void":
            request.ticket.void()
        else:
            request.ticket.settle_reserved()

    def _roll(self, amount: int) -> None:
        """The next window of all limits begins."""
        self.exact = False
        for share in (self.requests, self.prompts, self.tokens):
            share.window += 1
            share.left, share.spent = amount, 0
            self.given[id(share)] = amount

    def _swap(self, amount: int) -> None:
        """The share of tokens is retired, and another one takes its place."""
        self.exact = False
        old = self.tokens
        old.left, old.window = 0, -1
        self.tokens = FakeShare(old.key, amount, old.amount, window=self.requests.window)
        self.given[id(self.tokens)] = amount
        self.world.rights.shares[old.key] = self.tokens

    def _shares(self) -> tuple[FakeShare, ...]:
        return self.requests, self.prompts, self.tokens, self.places

    def check(self) -> None:
        for share in (self.requests, self.prompts, self.tokens):
            assert share.left >= 0
            assert share.left + share.spent == self.given[id(share)]
        assert self.places.left == 4 - len(self.open)
        assert self.door.tallies.open == len(self.open)


@settings(deadline=None, max_examples=example_count(150))
@given(
    STEPS,
    st.sampled_from(["worst_case", "estimate"]),
    st.sampled_from(["debt", "finish"]),
)
def test_rights_are_neither_lost_nor_made_and_every_request_is_settled_once(
    steps: list[tuple[str, int, int]],
    reserve: Literal["worst_case", "estimate"],
    on_exhausted: Literal["debt", "finish"],
) -> None:
    async def history() -> None:
        scene = Scene(reserve, on_exhausted)
        for step, which, amount in steps:
            await scene.play(step, which, amount)
            scene.check()
        for request in list(scene.open):
            await scene.play("settle", scene.open.index(request), 0)
        scene.check()
        if scene.exact:
            assert scene.tokens.spent + scene.tokens.debt == scene.used
            assert scene.prompts.spent + scene.prompts.debt == scene.asked

    asyncio.run(history())
