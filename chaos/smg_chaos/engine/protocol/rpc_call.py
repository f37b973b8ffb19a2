"""RPC call in progress, as a server sees it: messages to take, an end, and a wake-up callback
(`bell`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class Code(IntEnum):
    """The gRPC status codes this engine ends calls with."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class How(Enum):
    """Means by which a call ends."""

    STATUS = auto()
    RESET = auto()
    """RST_STREAM, no trailers."""
    CLOSE = auto()
    """The whole connection goes."""


@dataclass(frozen=True, slots=True)
class End:
    """End of a call."""

    code: Code
    message: str = ""
    how: How = How.STATUS


FINE = End(Code.OK)
GONE = End(Code.UNAVAILABLE, "the connection is gone", How.CLOSE)


def _silent(call: "Call") -> None:
    """Ring no bell."""


class Call:
    """An RPC. A server takes messages whenever it can write; `end` is final once set and all is
    taken.

    `bell` is rung after new messages or the end appeared, never from within `take`.
    """

    __slots__ = ("_ready", "bell", "end", "stirred")

    def __init__(self, messages: Sequence[bytes] = (), end: End | None = None) -> None:
        self._ready = list(messages)
        self.end = end
        self.bell: Callable[[Call], None] = _silent
        self.stirred = False

    def take(self, *, lagging: bool = False) -> list[bytes]:
        """Return the ready messages and remove them.

        `lagging` says that the reader made this call wait: some engines then merge what they have.
        """
        ready, self._ready = self._ready, []
        return ready

    def say(self, message: bytes) -> None:
        """Add a message."""
        self._ready.append(message)

    def cut(self, end: End) -> None:
        """End the call now, without the messages still to come; a call ends once."""
        if self.end is None:
            self.end = end

    def cancel(self, now_s: float) -> None:
        """Handle the caller's cancellation: free what the call holds. Safe to call at any time,
        more than once.
        """
        self.cut(End(Code.CANCELLED))

    @property
    def waits(self) -> int:
        """How many messages wait to be taken."""
        return len(self._ready)


def unary(message: bytes) -> Call:
    """Return a call that answered at once."""
    return Call((message,), FINE)


def refused(code: Code, message: str) -> Call:
    """Return a call that was refused at once."""
    return Call((), End(code, message))
