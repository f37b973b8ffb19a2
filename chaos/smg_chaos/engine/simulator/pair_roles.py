"""Pair roles of an engine: it gives computed prompts to a partner, or takes them from one. Pure.

    sglang     the first engine keeps a prompt in a room and sends nothing until the second one
               took it; that one is silent until it did. Either side that disconnects, or never
               comes, ends both calls.
    nixl       the first engine answers at once, with where its blocks are; the second one fetches
               them.
    mooncake   the first engine was given an id for its blocks; the second one is given id, engine
               and address, and waits for them.
    store      an engine that computes a prompt puts its blocks into a store, and looks there first.

What an engine does with an invalid request is what the real ones do: SGLang refuses one without a
room; vLLM takes one without parameters for an ordinary one, parks one whose parameters are
incomplete for ever, and dies of one that was sent to the wrong side of a Mooncake pair, as of one
with no blocks to fetch.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from smg_chaos.engine.cache.blocks import chain
from smg_chaos.engine.cache.shared_store import MemoryStore, Store
from smg_chaos.engine.pairs.encoded_pictures import Pictures
from smg_chaos.engine.pairs.handover import (
    Asking,
    Courier,
    Exchange,
    Gone,
    Handed,
    Heard,
    Shelf,
    Thing,
)
from smg_chaos.engine.pairs.legs import Leg, Side, Wrong, digest_of, leg_of
from smg_chaos.engine.protocol.faults import Faults
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.response_writer import Ending
from smg_chaos.engine.protocol.rpc_call import Call, Code, End, refused
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.engine_counters import Tally
from smg_chaos.engine.simulator.generation import Generation, GenerationChoice

_AGAIN_S: Final = 0.25
"""After which somebody is looked for again who was not there."""


class PairedEngine(Protocol):
    """An engine, as far as its part in pairs is concerned."""

    settings: EngineSettings
    faults: Faults
    tally: Tally
    started_s: float
    died: int | None
    down: bool
    dead: bool

    @property
    def ranks(self) -> Sequence[object]:
        """Its ranks, by number."""
        ...

    def wall_s(self, now_s: float) -> float:
        """Return the wall-clock time of a moment, in seconds since the epoch."""
        ...

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Do something at a moment."""
        ...

    def kill(self, now_s: float) -> None:
        """Kill the engine behind the servicer."""
        ...

    def start(self, call: Generation, now_s: float) -> None:
        """Queue a call's choices up, or wait for what it needs."""
        ...

    def start_now(self, call: Generation, now_s: float) -> None:
        """Queue a call's choices up."""
        ...

    def finished(self, call: Generation, now_s: float) -> None:
        """Take note of it if all choices of a call are over."""
        ...

    def give_up(self, call: Generation, now_s: float) -> None:
        """Take everything back from a call whose end is known."""
        ...


class Pairs:
    """Pairing state of one engine. `where` is the address it gives to others; `courier` asks
    theirs.
    """

    def __init__(self, engine: PairedEngine) -> None:
        self._engine = engine
        self._style = engine.settings.style()
        self.where = ("127.0.0.1", engine.settings.bootstrap_port)
        self.courier: Courier = Exchange()
        self.store: Store = MemoryStore()
        self._legs: dict[Generation, Leg] = {}
        self._keys: dict[str, Generation] = {}
        self._count = 0
        self.shelf = Shelf(patient=self._style != "nixl", deserted=self._deserted)
        self.pictures: Pictures[Generation] = Pictures(
            engine, lambda: self.shelf, lambda: self.courier, self.failed
        )

    @property
    def engine_id(self) -> str:
        """The connectors' id of this life of the engine."""
        engine = self._engine
        host, port = self.where
        started_ms = int(engine.wall_s(engine.started_s) * 1000)
        return engine.settings.engine_id or f"engine-{host}-{port}-{started_ms}"

    @property
    def serves(self) -> bool:
        """Whether others fetch from it."""
        role = self._engine.settings.role
        if self._style == "sglang":
            return role in ("prefill", "encode")
        return self._style in ("nixl", "mooncake") and role != "decode"

    def id_of(self, rank: int) -> str:
        """Return the connectors' id of one rank of this engine."""
        return f"{self.engine_id}_dp{rank}" if len(self._engine.ranks) > 1 else self.engine_id

    def asked(self, key: str, heard: Heard, now_s: float) -> Asking:
        """Accept another engine's question for a key."""
        if self._engine.died is not None or self._engine.down or self._engine.dead:
            return _absent(heard, now_s)
        return self.shelf.ask(key, heard, now_s)

    # ── A request comes in ──────────────────────────────────────────────────

    def met(self, asked: Asked, now_s: float) -> Call | Leg | None:
        """Return the end of an impossible request, or its leg of a pair, or None where it has
        none.
        """
        engine = self._engine
        leg = leg_of(asked, engine.settings)
        if not isinstance(leg, Wrong):
            if leg is not None and leg.side is Side.PREFILL and leg.key in self._keys:
                return refused(Code.INTERNAL, f"{leg.key} is in use")
            return leg
        if leg.kills:
            engine.kill(now_s)
            return Call((), End(Code.INTERNAL, "the engine is dead"))
        engine.tally.refused += 1
        return refused(Code.INVALID_ARGUMENT, leg.message)

    def joined(self, call: Generation, leg: Leg) -> None:
        """Register a call's leg; its answer is planned already."""
        self._legs[call] = leg
        if leg.side is Side.PREFILL:
            if leg.word == "blocks":  # an engine tells its requests apart, whatever they are called
                self._count += 1
                leg.key = f"{leg.key}-{self._count:08x}"
            if leg.word:
                leg.key = f"{leg.word} {self.id_of(call.home.number)} {leg.key}"
            self._keys[leg.key] = call
        if self._style != "sglang":
            return
        if leg.side is Side.DECODE:
            call.asked.prompt_logprobs = None  # it never sees the prompt at work
            return
        call.withheld = True
        for choice in call.choices:
            if choice.ending is not None:
                choice.end_at, choice.ending, choice.trimmed = 1, Ending("length"), 0

    def waits(self, call: Generation, now_s: float) -> bool:
        """Return whether a call cannot start yet; it is started when it can."""
        if self.pictures.waits(call, now_s):
            return True
        leg = self._legs.get(call)
        if leg is None:
            if self._style == "store":
                self._look_up(call)
            return False
        engine = self._engine
        if leg.side is Side.DECODE:
            if leg.host:
                engine.at(now_s + engine.settings.pair_wait_s, partial(self._too_late, call))
                self._ask(call, now_s)
            return True
        return False

    def _look_up(self, call: Generation) -> None:
        ids, size = call.asked.ids, call.home.table.size
        found = self.store.match(chain(list(ids), size)[: max(0, len(ids) - 1) // size])
        call.handed = Handed(None, found * size, found * size)

    # ── The second engine ───────────────────────────────────────────────────

    def _ask(self, call: Generation, now_s: float) -> None:
        leg = self._legs.get(call)
        if leg is not None and leg.asking is None:
            heard = partial(self._heard, call)
            asking = self.courier.ask(leg.host, leg.port, leg.key, heard, now_s)
            if call in self._legs and not leg.waits_again:
                leg.asking = asking

    def _heard(self, call: Generation, asking: Asking, what: Handed | Gone, now_s: float) -> None:
        leg = self._legs.get(call)
        if leg is None:
            asking.withdraw(now_s)
            return
        if isinstance(what, Handed):
            leg.asking = asking
            self._arrived(call, what, now_s)
        elif what.absent and self._style != "nixl":
            leg.asking, leg.waits_again = None, True
            self._engine.at(now_s + _AGAIN_S, partial(self._again, call))
        else:
            self.failed(call, what.reason, now_s)

    def _again(self, call: Generation, now_s: float) -> None:
        leg = self._legs.get(call)
        if leg is not None:
            leg.waits_again = False
            self._ask(call, now_s)

    def _arrived(self, call: Generation, what: Handed, now_s: float) -> None:
        engine, fault = self._engine, call.fault
        if fault is not None and fault.name == "transfer-fails":
            engine.faults.hit(fault)
            self.failed(call, "fault transfer-fails", now_s)
            return
        if what.digest != digest_of(call.asked):
            self.failed(call, "what was handed over is another prompt", now_s)
            return
        leg = self._legs.pop(call)
        assert leg.asking is not None, "somebody was asked"
        leg.asking.took(now_s)
        engine.tally.taken_over += 1
        cached = what.cached if self._style == "sglang" else max(0, what.tokens - 1)
        # vLLM computes the whole prompt anew where its log probabilities are wanted.
        anew = self._style != "sglang" and call.asked.prompt_logprobs is not None
        call.handed = (
            Handed(what.digest, 0, 0) if anew else Handed(what.digest, what.tokens, cached)
        )
        if what.pictures and call.plan_again is not None:
            # Its keys and values are those of what was seen in the pictures.
            call.asked.pictures = what.pictures
            call.plan_again()
        engine.start_now(call, now_s)

    def _too_late(self, call: Generation, now_s: float) -> None:
        if call in self._legs and call.end is None:
            self.failed(call, "the partner did not come in time", now_s)

    def failed(self, call: Generation, reason: str, now_s: float) -> None:
        """End a call whose partner failed, or compute everything here."""
        engine, leg = self._engine, self._legs[call]
        if leg.side is Side.DECODE and self._style != "sglang":
            self.forget(call, now_s)
            if engine.settings.kv_load_failure == "recompute":
                engine.start_now(call, now_s)
                return
            engine.tally.cut += 1
            call.fail(now_s)
        else:
            side = leg.side.name.capitalize()
            call.verdict = End(Code.INTERNAL, f"{side} transfer failed for {leg.key}: {reason}")
            engine.tally.cut += 1
            engine.give_up(call, now_s)
        call.bell(call)

    # ── The first engine ────────────────────────────────────────────────────

    def keeps(self, choice: GenerationChoice, now_s: float) -> bool:
        """Note that a choice made its last token; return whether its call is kept open for its
        partner.
        """
        call = choice.call
        leg = self._legs.get(call)
        if self._style == "store" and choice.ending is not None:
            self.store.put(chain(list(call.asked.ids), call.home.table.size))
        if leg is None or leg.side is Side.DECODE or choice.ending is None or call.aborting:
            return False
        if self._style != "sglang" and (
            choice.ending.reason not in leg.handed_after or leg.key in self.shelf
        ):
            self.forget(call, now_s)
            return False
        call.home.scheduler.keep(choice)
        asked = call.asked
        pictures = tuple(asked.pictures)
        handed = Handed(digest_of(asked), len(asked.ids), choice.cached, pictures)
        if self._style == "sglang":
            fetched = partial(self._fetched, call, choice)
            left = partial(self._left, call)
            engine = self._engine
            engine.at(now_s + engine.settings.pair_wait_s, partial(self._too_late, call))
            self.shelf.put(leg.key, Thing(handed, fetched, left), now_s)
            return True
        self._lend(call, choice, leg, handed, now_s)
        return False

    def _lend(
        self, call: Generation, choice: GenerationChoice, leg: Leg, handed: Handed, now_s: float
    ) -> None:
        """Keep blocks for a partner that comes in time; the call itself is over."""
        engine = self._engine
        if self._style == "nixl":
            call.transfer = json.dumps(self._told(call, choice, leg))
        self._done(call)

        def fetched(at_s: float) -> None:
            engine.tally.handed_over += 1
            returned(at_s)

        def returned(at_s: float) -> None:
            call.home.scheduler.drop(choice)
            call.home.scheduler.admit(at_s)

        thing = Thing(handed, fetched)

        def expired(at_s: float) -> None:
            self.shelf.drop(leg.key, "nobody came in time", at_s, only=thing)
            returned(at_s)

        engine.at(now_s + engine.settings.kv_lease_s, expired)
        self.shelf.put(leg.key, thing, now_s)

    def _told(self, call: Generation, choice: GenerationChoice, leg: Leg) -> dict[str, Any]:
        host, port = self.where
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(choice.blocks)],
            "remote_engine_id": self.id_of(call.home.number),
            "remote_request_id": leg.key.rpartition(" ")[2],
            "remote_host": host,
            "remote_port": port,
            "tp_size": 1,
            "dcp_size": 1,
            "pp_size": 1,
            "remote_num_tokens": len(call.asked.ids),
            "remote_blocks_expiry_time": None,
            "transfer_mode": "pull",
        }

    def _fetched(self, call: Generation, choice: GenerationChoice, now_s: float) -> None:
        engine = self._engine
        self._done(call)
        call.home.scheduler.drop(choice)
        call.withheld = False
        engine.tally.handed_over += 1
        engine.finished(call, now_s)
        call.bell(call)

    def _left(self, call: Generation, now_s: float) -> None:
        if call in self._legs:
            self.failed(call, "the decode engine went away", now_s)

    def _deserted(self, key: str, now_s: float) -> None:
        call = self._keys.get(key)
        if call is not None and self._style == "sglang":
            self.failed(call, "the decode engine went away", now_s)

    # ── Ends ────────────────────────────────────────────────────────────────

    def _done(self, call: Generation) -> Leg | None:
        leg = self._legs.pop(call, None)
        if leg is not None and self._keys.get(leg.key) is call:
            del self._keys[leg.key]
        return leg

    def forget(self, call: Generation, now_s: float) -> None:
        """Free what a call that is over still shares."""
        self.pictures.forget(call, now_s)
        leg = self._done(call)
        if leg is None:
            return
        if leg.asking is not None:
            leg.asking.withdraw(now_s)
        # Under one name may lie what an earlier call has lent already: that is not this call's.
        lent = self._style != "sglang" and leg.key in self.shelf
        if leg.side is Side.PREFILL and not lent:
            self.shelf.drop(leg.key, "the prefill engine gave it up", now_s)
            for choice in call.choices:
                call.home.scheduler.drop(choice)

    def clear(self, now_s: float) -> None:
        """Drop everything that is kept for others."""
        self.shelf.clear("the prefill engine is gone", now_s)


def _absent(heard: Heard, now_s: float) -> Asking:
    return Exchange().ask("", 0, "", heard, now_s)
