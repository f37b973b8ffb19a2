"""Cache knowledge of one gateway node: an index of the engines' prefix caches, or none.

The index, the followers of engines and the lookups of prompts are the node's own, as in production;
this module has only what connects them to the simulated world: batches made of the engines'
changes, and the way to other nodes.
"""

from array import array
from collections.abc import Sequence
from typing import Final, Protocol

from smg_chaos.engine.cache.blocks import Change, Removed, Stored
from smg_node.engines.kv_events import KvBatch, KvBlock, KvCleared, KvEvent, KvRemoved, KvStored
from smg_node.routing.kv_index.block_hash import Roots, seed_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.kv_index.prompt_lookup import Assumed, PromptLookup, PromptLookups

ENOUGH_BLOCKS: Final = 1_024
"""So many blocks make an engine one like the others: it has been given its share of beginnings."""


class Knowledge(Protocol):
    """View of prefix caches that a node places prompts by."""

    def of(self, ids: "array[int]", now_s: float) -> PromptLookup | None:
        """Return the lookup key of a prompt; None where there is no index."""
        ...

    def dispatched(self, prompt: PromptLookup | None, worker: str, now_s: float) -> None:
        """Note that a worker made the first token of a prompt."""
        ...

    def answered(
        self, prompt: PromptLookup | None, ids: "array[int]", worker: str, now_s: float
    ) -> None:
        """Note that a worker answered a prompt with these ids."""
        ...

    def heard(self, worker: str, batch: KvBatch, now_s: float) -> None:
        """Apply an engine's cache events."""
        ...

    def holds_enough(self, worker: str) -> bool:
        """Return whether a worker's cache is known to hold so much that the worker is not new any
        more.
        """
        ...

    def tick(self, now_s: float) -> None:
        """Advance by a second."""
        ...


class Blind:
    """No knowledge of caches."""

    def of(self, ids: "array[int]", now_s: float) -> PromptLookup | None:
        """See `Knowledge`."""
        return None

    def dispatched(self, prompt: PromptLookup | None, worker: str, now_s: float) -> None:
        """See `Knowledge`."""

    def answered(
        self, prompt: PromptLookup | None, ids: "array[int]", worker: str, now_s: float
    ) -> None:
        """See `Knowledge`."""

    def heard(self, worker: str, batch: KvBatch, now_s: float) -> None:
        """See `Knowledge`."""

    def holds_enough(self, worker: str) -> bool:
        """See `Knowledge`."""
        return False

    def tick(self, now_s: float) -> None:
        """See `Knowledge`."""


class Indexed:
    """An index of the node's own; `follows` are the workers whose events it receives.

    `on_assumed` is called with the placements of its own prompts.
    """

    def __init__(self, model: str, follows: Sequence[str]) -> None:
        self.index = PrefixIndex()
        self.on_assumed: Assumed | None = None
        self._root = Roots(model, "digest", seed=seed_of("cluster"))
        self._beginnings = PromptLookups(self.index, on_assumed=self._assumed)
        self._followers = {
            worker: KvFollower(worker, self.index, root=self._root) for worker in follows
        }

    def of(self, ids: "array[int]", now_s: float) -> PromptLookup | None:
        """See `Knowledge`."""
        return self._beginnings.of(self._root(), ids, now_s)

    def dispatched(self, prompt: PromptLookup | None, worker: str, now_s: float) -> None:
        """See `Knowledge`; of a followed worker the event tells it anyway."""
        if prompt is not None and worker not in self._followers:
            self._beginnings.dispatched(prompt, worker, now_s)

    def answered(
        self, prompt: PromptLookup | None, ids: "array[int]", worker: str, now_s: float
    ) -> None:
        """See `Knowledge`; of a followed worker the event tells it anyway."""
        if prompt is not None and worker not in self._followers:
            self._beginnings.answered(prompt, ids, worker, now_s)

    def heard(self, worker: str, batch: KvBatch, now_s: float) -> None:
        """See `Knowledge`."""
        follower = self._followers.get(worker)
        if follower is not None:
            follower.feed(batch, now_s)

    def _assumed(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        if self.on_assumed is not None:
            self.on_assumed(worker, hashes, now_s)

    def holds_enough(self, worker: str) -> bool:
        """See `Knowledge`."""
        return worker in self._followers and self.index.blocks(worker) >= ENOUGH_BLOCKS

    def follows(self, worker: str) -> bool:
        """Return whether it receives the events of a worker itself."""
        return worker in self._followers

    def tick(self, now_s: float) -> None:
        """See `Knowledge`."""
        self.index.tick(now_s)
        self.index.sweep()


def batch_of(sequence: int, changes: Sequence[Change]) -> KvBatch:
    """Return what an engine would publish of these changes."""
    return KvBatch(sequence, tuple(map(_event, changes)))


def _event(change: Change) -> KvEvent:
    if isinstance(change, Stored):
        blocks = tuple(KvBlock(one.key, array("I", one.tokens)) for one in change.contents)
        return KvStored(change.contents[0].parent, blocks)
    if isinstance(change, Removed):
        return KvRemoved(change.keys)
    return KvCleared()
