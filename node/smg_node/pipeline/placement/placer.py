"""Placer: from a model name to a reserved worker, with the waits when none is free.

Deciding is one synchronous step (`decider`). Only waiting is asynchronous, and there are two kinds
of it. Where no worker can be had at all (none is ready, or all are broken), a request waits a
little for one to come back. Where all are full, it waits in the queue, by its class
(`waiting_room`).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.core.request_context import Priority
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.health.backpressure import NEVER
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel
from smg_node.fleet.models.unknown_model import unknown_model
from smg_node.pipeline.placement.decider import (
    RETRY_AFTER_S,
    Beginnings,
    CachedPlacement,
    Decider,
    PlacementAttempt,
    PlacementRequest,
    Rule,
)
from smg_node.pipeline.placement.eligibility import eligible
from smg_node.pipeline.placement.own_models import OwnModels
from smg_node.pipeline.placement.placement_request import EncodeRule, ObserveEncode, unobserved
from smg_node.pipeline.placement.waiting_room import PAUSE_MIN_S, WaitingRoom, overloaded
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import NOBODY
from smg_node.routing.policy_registry import Policies
from smg_node.routing.wait_queue import ClassCounts, QueueOptions, WaitQueue

__all__ = ["PlacementRequest", "Placer", "PlacerOptions"]


@dataclass(frozen=True, slots=True)
class PlacerOptions:
    """Policies for all models and for single ones, and how long a request waits for a worker.

    Workers of `zone` go first until they have `zone_spill` of their concurrency; "" is no zone.
    With `shed`, no request queues, and where all workers are overloaded requests are refused. Where
    two workers share a call, each half has its own policy; regular workers take it where no pair
    can be had, with `fallback_regular`.
    """

    policy: str
    policies: Mapping[str, str] = field(default_factory=dict)
    wait_for_worker_s: float = 2.0
    line: QueueOptions = field(default_factory=QueueOptions)
    zone: str = ""
    zone_spill: float = 0.8
    shed: bool = False
    prefill_policy: str = "cache_aware"
    decode_policy: str = "least_load"
    prefill_policies: Mapping[str, str] = field(default_factory=dict)
    decode_policies: Mapping[str, str] = field(default_factory=dict)
    fallback_regular: bool = True
    encode: EncodeRule = field(default_factory=EncodeRule)
    encode_policies: Mapping[str, str] = field(default_factory=dict)


class Placer:
    """Chooses workers for this node's calls."""

    def __init__(
        self,
        fleet: Fleet,
        policies: Policies,
        options: PlacerOptions,
        *,
        clock: Clock,
        rng: Rng,
        beginnings: Beginnings | None = None,
        observe_encode: ObserveEncode = unobserved,
    ) -> None:
        self._fleet = fleet
        self._options = options
        self._clock = clock
        self._decider = Decider(
            fleet, policies, clock=clock, rng=rng, beginnings=beginnings, observe=observe_encode
        )
        self._rooms: dict[str, WaitingRoom] = {}
        self._rules: dict[str, Rule] = {}
        self._at_once = self._decider.at_once
        self._usual: dict[str, CachedPlacement] = {}
        """How the next call of a model is placed if nothing has changed, by its pool."""
        self.confirmed: Final = self._decider.confirmed
        """Takes in that the first token of a held call came, and when: its prompt lies in that worker's cache."""
        self.answered: Final = self._decider.answered
        """Takes in that a worker has answered a held call with these ids: the next turn begins with prompt and answer."""
        self.own: Final = OwnModels(fleet)
        """The own models behind public names."""
        fleet.watch(self._changed)

    def retune(
        self,
        *,
        policy: str,
        policies: Mapping[str, str],
        wait_for_worker_s: float,
        zone_spill: float | None = None,
        line: QueueOptions | None = None,
        shed: bool = False,
        prefill_policy: str | None = None,
        decode_policy: str | None = None,
        prefill_policies: Mapping[str, str] | None = None,
        decode_policies: Mapping[str, str] | None = None,
        fallback_regular: bool | None = None,
        encode: EncodeRule | None = None,
        encode_policies: Mapping[str, str] | None = None,
    ) -> None:
        """Use other policies from the next request on; policies whose name stays keep their state."""
        old = self._options
        self._options = replace(
            old,
            policy=policy,
            policies=dict(policies),
            wait_for_worker_s=wait_for_worker_s,
            zone_spill=old.zone_spill if zone_spill is None else zone_spill,
            line=old.line if line is None else line,
            shed=shed,
            prefill_policy=prefill_policy or old.prefill_policy,
            decode_policy=decode_policy or old.decode_policy,
            prefill_policies=dict(prefill_policies or {}),
            decode_policies=dict(decode_policies or {}),
            fallback_regular=old.fallback_regular if fallback_regular is None else fallback_regular,
            encode=encode or old.encode,
            encode_policies=dict(encode_policies or {}),
        )
        self._rules.clear()
        self._usual.clear()
        for room in self._rooms.values():
            room.line.retune(self._options.line)

    def line_counts(self) -> Mapping[str, Mapping[Priority, ClassCounts]]:
        """Return the outcomes of queued requests, for each model that ever had some."""
        return {name: room.line.counts() for name, room in self._rooms.items()}

    def context(self, model: ServedModel) -> int | None:
        """Return the maximum tokens of prompt and answer together on any worker; None if unknown."""
        cards = [worker.card for worker in self._fleet.serving(model)]
        contexts = [model.context(card) for card in cards if card is not None]
        known = [context for context in contexts if context is not None]
        return max(known) if known and len(known) == len(contexts) else None

    def ready_model(self, name: str) -> ServedModel | None:
        """Return the model of that name or alias if it is served by engines and its files are read;
        else None.
        """
        found = self._fleet.served(name)
        return found if found is not None and found.unread is None else None

    async def model(self, name: str, *, deadline_s: float) -> ServedModel:
        """Return the model of that name or alias, served by engines, its files read; of a route, its first target's.

        NOT_FOUND `model_not_found` if no worker serves it; OVERLOADED `no_worker_available` while a
        worker that might serve it is still connecting; status 501 if those that do speak HTTP.
        """
        found = self.own.behind(await self.known(name, deadline_s=deadline_s))
        if isinstance(found, ServedModel):
            if found.unread is not None:
                await self.read(found, deadline_s)
            return found
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED,
            f"the workers of {name!r} speak HTTP: its tokens are not known here",
            where="model",
            code="not_implemented",
            status=501,
        )

    async def read(self, model: ServedModel, deadline_s: float) -> None:
        """Return when the model's files are read. That ends within seconds, so only the client's
        deadline counts.
        """
        left_s = deadline_s - self._clock.monotonic_s()
        try:
            async with asyncio.timeout(None if left_s == float("inf") else left_s):
                await self._fleet.models.read(model)
        except TimeoutError:
            raise _no_worker(f"the tokenizer of {model.name!r} is still being read") from None
        except SmgError as error:
            raise _no_worker(
                f"no worker serves {model.name!r}: its tokenizer cannot be read: {error.message}"
            ) from error

    async def known(self, name: str, *, deadline_s: float) -> AnyModel:
        """Return the model of that name or alias, that of engines before that of HTTP workers; errors as `model`."""
        until_s = self._wait_until(deadline_s)
        while True:
            found = self._fleet.served(name) or self._fleet.relayed(name)
            if found is not None:
                return found
            if not self._fleet.unknown_yet():
                raise unknown_model(name, self._fleet.models, self._fleet.serving)
            self._fleet.doubt_unknown()
            if not await self._wait(until_s):
                raise _no_worker(f"no worker serves {name!r} yet, but some are still starting")

    def soon(self, model: AnyModel, wish: PlacementRequest) -> Reservation | None:
        """Choose a worker and count a call in, where no wait is needed and nothing is special;
        None: use `hold`.

        That is nearly always: a call that may go to every worker, of which some can be chosen, and
        an empty queue.
        """
        fits = wish.fits
        if wish.avoid is not NOBODY or wish.target is not None:
            return None
        if self._rooms and self._waiting(model):
            return None
        usual, now_s = self._usual.get(model.pool), self._clock.monotonic_s()
        if (
            usual is None
            or usual.version != self._fleet.version
            or usual.model is not model
            or now_s >= usual.until_s
        ):
            rule, shed = self._rule(model), self._options.shed
            usual = self._decider.usual(model, now_s, rule, shed=shed)
            if usual is None:
                return None
            self._usual[model.pool] = usual
        if usual.encoded and wish.encodable:
            return None
        if fits is not None and not all(map(fits, usual.choosable.workers)):
            return None
        return self._at_once(usual, wish, now_s)

    async def hold(self, model: AnyModel, wish: PlacementRequest) -> Reservation:
        """Choose a worker of `model` and count a call in.

        Waits a little for one to come back, then OVERLOADED `no_worker_available`; waits in the
        queue where all are full, then OVERLOADED `overloaded`. One that is not patient waits for neither. With a
        target it is that worker or an error: NOT_FOUND `worker_not_found`, OVERLOADED `worker_unavailable`.
        """
        began_s = now_s = self._clock.monotonic_s()
        try:
            if wish.target is not None:
                return self._decider.target(model, wish, now_s, self._rule(model))
            until_s = min(now_s + self._options.wait_for_worker_s, wish.deadline_s)
            while True:
                last, rule = now_s >= until_s, self._rules.get(model.name) or self._rule(model)
                stages = self._decider.stages_for(model, wish, now_s, rule, last=last)
                if self._options.shed and (stages.busy or stages.strained):
                    raise self._full(model, wish.priority, now_s)
                waiting = bool(self._rooms) and self._waiting(model)
                if not waiting:
                    hold = self._decider.find(
                        PlacementAttempt(model, wish, stages, rule, began_s), now_s
                    )
                    if hold is not None:
                        return hold
                if not wish.patient:
                    raise _no_worker(stages.lack(model.name))
                if waiting or stages.busy:
                    return await self._in_line(model, wish, began_s, until_s)
                if last:
                    raise _no_worker(stages.lack(model.name))
                self._fleet.doubt(model)
                await self._wait(min(until_s, max(stages.until_s, now_s + PAUSE_MIN_S)))
                now_s = self._clock.monotonic_s()
        except SmgError:
            self._note_unplaced(model, wish)
            raise

    def has_room(self, name: str) -> bool:
        """Whether own workers of the model of that name would be given a call without special needs at once."""
        model, now_s = self.own.model(name), self._clock.monotonic_s()
        if model is None or (self._rooms and self._waiting(model)):
            return False
        if isinstance(model, RelayedModel):
            # Targets of the same public name are no servers.
            return bool(eligible(self.own.servers(model), now_s).candidates)
        return self._decider.stages(model, now_s, self._rule(model)).open

    def _note_unplaced(self, model: AnyModel, wish: PlacementRequest) -> None:
        if wish.journey is not None:
            now_s = self._clock.monotonic_s()
            stages = self._decider.stages(model, now_s, self._rule(model))
            wish.journey.unplaced = stages.dropped

    def _rule(self, model: AnyModel) -> Rule:
        options, name = self._options, model.name
        rule = self._rules.get(name)
        if rule is None:
            rule = self._rules[name] = Rule(
                options.policies.get(name, options.policy),
                options.zone,
                options.zone_spill,
                options.prefill_policies.get(name, options.prefill_policy),
                options.decode_policies.get(name, options.decode_policy),
                options.fallback_regular,
                replace(
                    options.encode,
                    policy=options.encode_policies.get(name, options.encode.policy),
                ),
            )
        return rule

    # ── Waiting ──────────────────────────────────────────────────────────────

    async def _in_line(
        self, model: AnyModel, wish: PlacementRequest, began_s: float, until_s: float
    ) -> Reservation:
        def attempt(now_s: float) -> Reservation | None:
            rule = self._rule(model)
            last = now_s >= until_s
            stages = self._decider.stages_for(model, wish, now_s, rule, last=last)
            return self._decider.find(PlacementAttempt(model, wish, stages, rule, began_s), now_s)

        return await self._room(model).wait(wish.priority, wish.deadline_s, attempt)

    def _room(self, model: AnyModel) -> WaitingRoom:
        room = self._rooms.get(model.pool)
        if room is None:
            line = WaitQueue(self._options.line)
            room = WaitingRoom(line, self._clock, _Prospect(self, model))
            self._rooms[model.pool] = room
        return room

    def prospect(self, asked: AnyModel, now_s: float) -> tuple[SmgError | None, float]:
        """Return the error for queued requests if there is no worker to wait for, and when that may
        change by itself.
        """
        name = asked.name
        relayed = isinstance(asked, RelayedModel)
        model = self._fleet.relayed(name) if relayed else self._fleet.served(name)
        if model is None:
            return _no_worker(f"no worker serves {name!r} any more"), NEVER
        stages = self._decider.stages(model, now_s, self._rule(model))
        if stages.open or stages.busy:
            return None, stages.until_s
        return _no_worker(stages.lack(name)), stages.until_s

    @property
    def patience_s(self) -> float:
        """How long a request waits where no worker can be had, in seconds."""
        return self._options.wait_for_worker_s

    def _full(self, model: AnyModel, rank: Priority, now_s: float) -> SmgError:
        drain_s = self._room(model).line.drain_s(rank, now_s)
        return overloaded(f"all workers of {model.name!r} are overloaded", drain_s)

    def _waiting(self, model: AnyModel) -> bool:
        room = self._rooms.get(model.pool)
        return room is not None and len(room) > 0

    def _changed(self) -> None:
        for room in self._rooms.values():
            room.serve_soon()

    def _wait_until(self, deadline_s: float) -> float:
        return min(self._clock.monotonic_s() + self._options.wait_for_worker_s, deadline_s)

    async def _wait(self, until_s: float) -> bool:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return False
        await self._fleet.wait_changed(left_s)
        return True


class _Prospect:
    """Capacity of one model for its waiting room; see `waiting_room.CapacityView`."""

    def __init__(self, placer: Placer, model: AnyModel) -> None:
        self._placer = placer
        self._model = model

    def lost(self, now_s: float) -> SmgError | None:
        """See `CapacityView`."""
        return self._placer.prospect(self._model, now_s)[0]

    def again_s(self, now_s: float) -> float:
        """See `CapacityView`."""
        return self._placer.prospect(self._model, now_s)[1]

    def patience_s(self) -> float:
        """See `CapacityView`."""
        return self._placer.patience_s


def _no_worker(message: str) -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED, message, code="no_worker_available", retry_after_s=RETRY_AFTER_S
    )
