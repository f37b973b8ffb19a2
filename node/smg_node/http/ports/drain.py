"""Drain port: the drain status of a member: open work, duties, and its readiness probers."""

from typing import Literal, Protocol, TypeAlias

import msgspec

Stage: TypeAlias = Literal["serving", "settling", "draining", "drained", "leaving", "dead", "left"]
"""serving: nobody drains it. settling: it is not ready any more, and still takes what comes. draining: it refuses new
work, and finishes what is open. drained: nothing is open. leaving: it was told to stop. dead, left: it is gone."""


class Prober(msgspec.Struct, frozen=True):
    """A client that polls readiness, and the answer it got `ago_s` ago, which was the last time."""

    address: str
    agent: str
    """What he calls himself; empty where he does not say."""
    ago_s: float
    ready: bool


class OpenWork(msgspec.Struct, frozen=True):
    """Open work of one process or more: of tenants, since watching operators are not counted."""

    requests: int = 0
    """Whose answer has not begun."""
    streams: int = 0
    """Whose answer has begun and not ended."""
    background: int = 0
    """Responses that go on without anybody who asked."""
    taking: bool = False
    """Whether new work is taken..."""
    settle_left_s: float = 0.0
    """... and for how long it will be, where that ends."""
    cut_left_s: float | None = None
    """When what is open is cut off; None: it will not be, because nobody has told the node to stop."""
    probers: tuple[Prober, ...] = ()
    silent: tuple[str, ...] = ()
    """Processes of the node that did not say."""

    @property
    def left(self) -> int:
        """Amount of work that has to end before nothing is open."""
        return self.requests + self.streams + self.background


class Duties(msgspec.Struct, frozen=True):
    """What a node does on behalf of all, and hands over at shutdown; `spooled`: turns wait on its
    disk.
    """

    limits: int = 0
    workers: int = 0
    spooled: bool = False


class DrainView(msgspec.Struct, frozen=True):
    """Drain status of a member. Of one that is gone only `name`, `boot` and `stage` are set.

    `patience_s` is how long it would take from a stop signal until it cuts open work.
    """

    name: str
    boot: int
    stage: Stage
    work: OpenWork = OpenWork()
    duties: Duties = Duties()
    patience_s: float = 0.0


class DrainService(Protocol):
    """Drain status of members that are taken out of service."""

    async def draining(self, name: str) -> DrainView:
        """Return the drain status of a member.

        NOT_FOUND for an unknown member, UPSTREAM_TIMEOUT or UPSTREAM_FAILED for one that lives and
        does not answer.
        """
        ...
