"""Request scope: context variable with the current request's ids and trace, for logs and spans.

A context variable, not a global: every task has its own, and a task starts with a copy of its
parent's. It is the one thing in this code base that is not passed as an argument, because a log
line or a span five calls down belongs to the request whatever the functions between them know.
"""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Final, NamedTuple


class Span:
    """One piece of work inside a trace; this one records nothing and costs nothing."""

    __slots__ = ()

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Attach a fact about the work."""

    def headers(self) -> dict[str, str]:
        """Return the headers that make a callee's spans children of this one."""
        return {}

    def __enter__(self) -> "Span":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


NO_SPAN: Final = Span()


class Trace:
    """One request's place in a trace; this class is for no trace, or an unsampled one."""

    __slots__ = ("_upstream", "sampled", "trace_id")

    def __init__(self, trace_id: str = "", upstream: dict[str, str] | None = None) -> None:
        self.trace_id = trace_id
        self._upstream = upstream
        self.sampled = False
        """Whether it is recorded. A value of its own, because every request asks for it again and again."""

    def headers(self) -> dict[str, str]:
        """Return `traceparent` and `tracestate` for the engine; empty outside any trace."""
        return {} if self._upstream is None else dict(self._upstream)

    def child(self, name: str) -> Span:
        """Return a span for one piece of this request's work, to be used in a `with`."""
        return NO_SPAN

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Attach a fact about the request."""

    def end(self, status: int, error_code: str = "") -> None:
        """Close the request's own span; later children of it still belong to it."""


NO_TRACE: Final = Trace()


class Scope(NamedTuple):
    """The request a task works for."""

    request_id: str
    trace: Trace


_NOWHERE: Final = Scope("", NO_TRACE)
_scope: Final[ContextVar[tuple[str, Trace]]] = ContextVar("smg_scope", default=_NOWHERE)
"""What a scope is made of: making one for every request that nobody asks for would cost more than this."""


enter: Final[Callable[[tuple[str, Trace]], object]] = _scope.set
"""Say that this task, and those it starts from now on, work for the request of this id and trace.

The variable's own method, and what it takes: a function around it would cost every request twice as much as it does.
"""


def current() -> Scope:
    """Return the request this task works for; empty ids outside of any."""
    # As `Scope(*…)`, which would take a function of the interpreter's more.
    return tuple.__new__(Scope, _scope.get())


def sampled() -> bool:
    """Whether the current request's trace is recorded."""
    return _scope.get()[1].sampled


def child(name: str) -> Span:
    """Return a span of the current request, a no-op unless its trace is sampled."""
    return _scope.get()[1].child(name)
