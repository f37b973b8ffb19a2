"""Call extras: the key that tells a repeated run from a new one, and who hears of a call's start and progress."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from smg_node.mcp.session.session import Progressed
from smg_node.mcp.session.tool_call import PassedInput

IDEMPOTENCY_KEY: Final = "smg-node/idempotency-key"
"""In `_meta`: the protocol itself has no name for it."""
Noted: TypeAlias = Callable[[str, float | None, float | None], None]


class CallExtras:
    """Telling of one call. `way` is how the server is told the key: `meta`, `header:NAME`, `argument:NAME` or `none`.

    `sending` is called once, just before a first byte may leave; `noted` hears of progress (message, done, total).
    `passed`: what the server asks back is asked of the caller's client.
    """

    __slots__ = ("_noted", "_sending", "argument", "headers", "meta", "passed")

    def __init__(
        self,
        key: str = "",
        way: str = "meta",
        *,
        sending: Callable[[], None] | None = None,
        noted: Noted | None = None,
        passed: PassedInput | None = None,
    ) -> None:
        kind, _, name = way.partition(":")
        self.meta: Mapping[str, str] | None = (
            {IDEMPOTENCY_KEY: key} if key and kind == "meta" else None
        )
        self.headers: Mapping[str, str] | None = {name: key} if key and kind == "header" else None
        self.argument: tuple[str, str] | None = (name, key) if key and kind == "argument" else None
        self.passed = passed
        self._sending = sending
        self._noted = noted

    def begin(self) -> None:
        """Say that bytes of the call may leave from now on."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending()

    def note(self, progress: Progressed) -> None:
        """Tell of progress."""
        if self._noted is not None:
            self._noted(progress.message, progress.done, progress.total)


NO_EXTRAS: Final = CallExtras()
