"""Shadow tap: keeps what the client of one sampled request was told, for the comparison with its copy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from smg_node.core.generation.events import Usage
from smg_node.core.request_context import RequestContext
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.fleet.workers.worker_spec import SHADOW_LABEL
from smg_node.pipeline.relay.answer_collector import ListenAs
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Asks, Bills, Listener, RelayParts
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.providers.routes.shadow_rule import ShadowRule, shadow_rule_of

CLIENT_KEY_HEADER: Final = "x-smg-provider-key"
"""With a client's own key for its vendor: what it asks is between the two."""
ANSWER_MAX_BYTES: Final = 4 * 1024 * 1024
"""A request with a longer answer is not copied."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one answer took. `used` are tokens of the prompt, of its cached part, and of the answer."""

    took_s: float
    first_s: float | None
    used: tuple[int, int, int]
    cost_pico: int | None


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A request that was answered, its answer as its client got it, and where its copy is to go."""

    parts: RelayParts
    asked: Relayable
    asks: Asks
    context: RequestContext
    route: str
    target: str
    """Id of the worker that gets the copy."""
    rule: ShadowRule
    worker: str
    """Id of the worker that answered."""
    streamed: bool
    answer: bytes
    measured: Measured
    listen_as: ListenAs | None = None
    """What its bytes are read with, where they are a vendor's own; None where they are as its client got them."""

    @property
    def size_bytes(self) -> int:
        """What it holds in memory, about."""
        return len(self.asked.raw) + len(self.answer)


class ShadowTap:
    """Tap of one request."""

    def __init__(
        self,
        parts: RelayParts,
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        route: str,
        target: str,
        rule: ShadowRule,
        take: Callable[[Shadowed], None],
    ) -> None:
        self._take = take
        self._listen_as: ListenAs | None = None
        self._listener: Callable[[ListenAs | None], Listener | None] = asks.listen
        self.asks = replace(asks, listen=self._listen)
        """The request's origin, whose listeners are listened to as well."""
        self._origin = (parts, asked, asks, context, route, target, rule)
        self._body: list[bytes] = []
        self._size_bytes = 0
        self._streamed = False
        self._past = False
        """Whether its client was told the answer past this tap."""

    def hear(self, piece: Head | bytes) -> None:
        """Keep a piece of what the client is told, unless the vendor's own bytes are kept."""
        if isinstance(piece, Head) and piece.told:
            self._past = True
        elif self._listen_as is None:
            self.keep(piece)

    def keep(self, piece: Head | bytes) -> None:
        """Keep a piece of the answer; nothing of one that is too long."""
        if isinstance(piece, Head):
            self._streamed = piece.events
            return
        self._size_bytes += len(piece)
        if self._size_bytes <= ANSWER_MAX_BYTES:
            self._body.append(piece)
        else:
            self._body.clear()

    def _listen(self, listen_as: ListenAs | None) -> Listener | None:
        """Return who listens to the next call, whose answer is kept instead of that of the call before."""
        listener = self._listener(listen_as)
        self._listen_as = None if listener is None else listen_as
        self._body.clear()
        self._size_bytes = 0
        return listener if listener is None or listen_as is None else _Overheard(listener, self)

    def over(
        self, worker: str, first_s: float | None, used: tuple[int, int, int], bills: Bills
    ) -> None:
        """Hand the request over: its answer is complete, and its client has it."""
        parts, context, target = self._origin[0], self._origin[3], self._origin[5]
        if worker == target or self._past or self._size_bytes > ANSWER_MAX_BYTES:
            return
        began_s, costs = context.received_s, [one.cost_pico for one in bills]
        measured = Measured(
            parts.clock.monotonic_s() - began_s,
            None if first_s is None else first_s - began_s,
            used,
            sum_known(costs),
        )
        body = b"".join(self._body)
        self._take(Shadowed(*self._origin, worker, self._streamed, body, measured, self._listen_as))


class _Overheard:
    """Listener of one call whose pieces are kept as well; see `Listener`."""

    def __init__(self, listener: Listener, tap: ShadowTap) -> None:
        self._inner = listener
        self._tap = tap

    def hear(self, piece: Head | bytes) -> bool:
        """See `Listener`."""
        self._tap.keep(piece)
        return self._inner.hear(piece)

    def over(self) -> None:
        """See `Listener`."""
        self._inner.over()

    @property
    def finished(self) -> bool:
        """See `Listener`."""
        return self._inner.finished

    @property
    def used(self) -> Usage | None:
        """See `Listener`."""
        return self._inner.used

    @property
    def spent(self) -> Usage | None:
        """See `Listener`."""
        return self._inner.spent

    @property
    def deltas(self) -> int:
        """See `Listener`."""
        return self._inner.deltas


def sum_known(costs: Sequence[int | None]) -> int | None:
    """Return the sum of what is known; None if nothing is."""
    known = [one for one in costs if one is not None]
    return sum(known) if known else None


def tap_of(
    parts: RelayParts,
    asked: Relayable,
    asks: Asks,
    context: RequestContext,
    model: RelayedModel,
    take: Callable[[Shadowed], None],
) -> ShadowTap | None:
    """Return the tap of a request that is to be copied; None for nearly all.

    None as well for a request with its client's own key, and one for a certain worker.
    """
    for worker in parts.fleet.serving(model):
        label = worker.labels.get(SHADOW_LABEL)
        rule = None if label is None else shadow_rule_of(label)
        if rule is None:
            continue
        if parts.rng.random() >= rule.share or context.target_worker is not None:
            return None
        if asks.headers.get(CLIENT_KEY_HEADER) or asks.translate is None:
            return None
        return ShadowTap(parts, asked, asks, context, model.name, worker.id, rule, take)
    return None
