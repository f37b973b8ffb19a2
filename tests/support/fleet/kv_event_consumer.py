"""A subscriber to a simulated engine's KV events, with a follower and an index behind it."""

from array import array
from collections.abc import Sequence

from smg_chaos.engine.cache.blocks import chain as engine_chain
from smg_chaos.engine.servers.in_memory import MemoryCall
from smg_node.core.errors import SmgError
from smg_node.engines.grpc.kv_event_reader import KvReader, kv_error, kv_request
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.routing.kv_index.block_hash import chain, root_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower, Verdict
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from support.engines.simulated_engine import Simulation

ROOT = root_of("m", "d", seed=1)
BLOCK = 64


class Hearing:
    """One node's ear at one engine; `hear` takes in what came, and subscribes again as often as need be."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.index = PrefixIndex(block=BLOCK)
        self.follower = KvFollower("w", self.index, root=lambda adapter, salt: ROOT)
        self.errors: list[str] = []
        self.now_s = 0.0
        self.subscribe()

    def subscribe(self) -> None:
        self.start = self.follower.start
        self._reader = KvReader()
        self._call: MemoryCall = self.simulation.call("SubscribeKvEvents", kv_request(self.start))
        self._read = 0

    def hear(self) -> None:
        for _ in range(10):
            if not self._heard_all():
                return
        raise AssertionError("it subscribes again and again")

    def _heard_all(self) -> bool:
        """Take in what there is; return whether a new subscription was begun."""
        while self._read < len(self._call.messages):
            batch = self._reader.read(self._call.messages[self._read])
            self._read += 1
            if self.follower.feed(batch, self.now_s) is Verdict.RESYNC:
                self.subscribe()
                return True
        if self._call.end is not None:
            error = self._error()
            self.errors.append(error.code or "")
            self.follower.lost(error.code or "")
            self.subscribe()
            return True
        return False

    def _error(self) -> SmgError:
        assert self._call.end is not None
        code = StatusCode(self._call.end.code.value)
        return kv_error(TransportError(code, self._call.end.message))

    def known(self, prompt: Sequence[int]) -> float:
        """Return how many blocks of a prompt the index believes to be cached."""
        found = self.index.match(chain(ROOT, array("I", prompt), BLOCK), self.now_s)
        return found.get("w", 0.0)

    def true(self, prompt: Sequence[int]) -> int:
        """Return how many really are."""
        table = self.simulation.engine.table
        live = {content.key for content in table.live()}
        size = table.size
        held = 0
        for key in engine_chain(prompt, size):
            if key not in live:
                break
            held += size
        return held // BLOCK
