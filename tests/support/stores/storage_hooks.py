"""Hooks of a store for tests: one that writes down what it sees and says what it was told to say."""

import asyncio
from collections.abc import Callable

from smg_storage.hooks import HookContext, Payload, Reject, Replace

Answer = Callable[[str, Payload], Reject | Replace | None]


class Witness:
    """Sees everything; `answer` says what it answers before, and it takes `slow_s` for each."""

    def __init__(self, answer: Answer | None = None, *, slow_s: float = 0.0) -> None:
        self.before_saw: list[tuple[str, Payload]] = []
        self.after_saw: list[tuple[str, object]] = []
        self.contexts: list[HookContext] = []
        self.broken = False
        self._answer = answer
        self._slow_s = slow_s

    async def before(
        self, operation: str, context: HookContext, payload: Payload
    ) -> Reject | Replace | None:
        """Write it down, and answer."""
        self.before_saw.append((operation, payload))
        self.contexts.append(context)
        await self._be_as_told()
        return self._answer(operation, payload) if self._answer is not None else None

    async def after(
        self, operation: str, context: HookContext, payload: Payload, result: object
    ) -> None:
        """Write it down."""
        self.after_saw.append((operation, result))
        await self._be_as_told()

    async def _be_as_told(self) -> None:
        if self.broken:
            raise LookupError("a bug")
        if self._slow_s:
            await asyncio.sleep(self._slow_s)


def nobody() -> Witness:
    """Return one, as an entry point does."""
    return Witness()
