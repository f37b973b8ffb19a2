"""Pairs of simulated engines: in memory on one virtual clock, or served from threads and asking over TCP."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smg_chaos.engine.cache.shared_store import MemoryStore
from smg_chaos.engine.pairs.handover import Exchange
from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.servers.in_memory import MemoryCall
from support.engines.simulated_engine import PROMPT, Served, Simulation, served

PORT = 8998
ROOM = 77


class SimulatedPair:
    """A prefill and a decode engine that can reach each other, and a client of both."""

    def __init__(
        self,
        contract: str = "sglang",
        connector: str = "contract",
        *,
        prefill: dict[str, Any] | None = None,
        decode: dict[str, Any] | None = None,
        faults: Sequence[str] = (),
        prefill_faults: Sequence[str] = (),
        **both: Any,
    ) -> None:
        shared = {"kv_connector": connector, **both}
        self.prefill = Simulation(
            contract,
            faults=prefill_faults,
            **{"role": "prefill", "bootstrap_port": PORT, **shared, **(prefill or {})},
        )
        self.decode = Simulation(
            contract,
            faults=faults,
            **{"role": "decode", "bootstrap_port": PORT + 1, **shared, **(decode or {})},
        )
        self.exchange = Exchange()
        self.store = MemoryStore()
        for one in self.sides:
            pairs = one.engine.pairs
            pairs.courier, pairs.store = self.exchange, self.store
            if pairs.serves:
                self.exchange.open(*pairs.where, pairs.asked)

    @property
    def sides(self) -> tuple[Simulation, Simulation]:
        return self.prefill, self.decode

    @property
    def now_s(self) -> float:
        return self.prefill.face.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass for both, in the order of what is due."""
        until_s = self.now_s + seconds
        while (due_s := self._due_s()) is not None and due_s <= until_s:
            self._move(due_s)
        self._move(until_s)
        self.check()

    def _due_s(self) -> float | None:
        due = [one.engine.due_s() for one in self.sides if one.engine.died is None]
        return min((max(due_s, self.now_s) for due_s in due if due_s is not None), default=None)

    def _move(self, now_s: float) -> None:
        for one in self.sides:
            one.face.now_s = now_s
            one.engine.advance(now_s)

    def run(self, *calls: MemoryCall, patience_s: float = 60.0) -> None:
        """Let time pass until these calls ended, or for so long."""
        until_s = self.now_s + patience_s
        while not all(call.end is not None for call in calls):
            due_s = self._due_s()
            if due_s is None or due_s > until_s:
                self._move(until_s)
                break
            self._move(due_s)
        self.check()

    def check(self) -> None:
        for one in self.sides:
            one.engine.check()

    def in_room(
        self, side: Simulation, ids: Sequence[int] | None = None, *, room: int = ROOM, **fields: Any
    ) -> MemoryCall:
        """Start one side's call of a pair that meets in a room."""
        where = {"room": room, "room_host": "127.0.0.1", "room_port": PORT}
        return side.start(ids, **{"request_id": f"in-{room}", **where, **fields})

    def both_in_room(
        self, ids: Sequence[int] | None = None, *, room: int = ROOM, **fields: Any
    ) -> tuple[MemoryCall, MemoryCall]:
        """Start both calls."""
        first = self.in_room(self.prefill, ids, room=room, **fields)
        return first, self.in_room(self.decode, ids, room=room, **fields)

    def worked_off(self, told: dict[str, Any], **fields: Any) -> MemoryCall:
        """Run the first call of a pair that a connector serves."""
        asked = {"max_tokens": 1, "ignore_eos": True, "transfer": json.dumps(told), **fields}
        call = self.prefill.start(**asked)
        self.run(call)
        return call

    def told(self, call: MemoryCall) -> dict[str, Any]:
        """Return what a call's last message says to whoever goes on."""
        (complete,) = self.prefill.completes(call)
        told = json.loads(complete["kv_transfer_params_json"])
        assert isinstance(told, dict)
        return told


@contextmanager
def served_pair(
    contract: str = "sglang",
    connector: str = "contract",
    *,
    server: Any = "grpc",
    prefill_faults: Sequence[str] = (),
    faults: Sequence[str] = (),
    **both: Any,
) -> Iterator[tuple[Served, Served]]:
    """Serve a prefill and a decode engine; the first one's bootstrap port is `pairs.where[1]`."""
    shared = {"contract": contract, "kv_connector": connector, "bootstrap_port": 0, **both}
    first = Wanted(settings={**shared, "role": "prefill"}, server=server, faults=prefill_faults)
    second = Wanted(settings={**shared, "role": "decode"}, server=server, faults=faults)
    with served(first) as prefill, served(second) as decode:
        yield prefill, decode


def ids_of(side: Simulation, call: MemoryCall) -> list[int]:
    """Return the ids of a call's chunks."""
    return [token for chunk in side.chunks(call) for token in chunk.get("token_ids", [])]


__all__ = ["PORT", "PROMPT", "ROOM", "SimulatedPair", "ids_of", "served_pair"]
