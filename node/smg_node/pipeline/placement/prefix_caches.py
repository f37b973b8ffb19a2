"""Prefix caches of all workers as this node knows them: from KV events and own dispatches.

One index for all models; a root keeps each model, adapter and salt apart. Each worker with a KV
event subscription has a consumer, which lasts as long as the worker serves that model; one that
serves another model is another cache. For a worker without events, this node remembers for a while
the prompts it sent there.

Placement reads with `of`, and records with `dispatched`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.core.generation.request import TokenIds
from smg_node.core.ids import WorkerId
from smg_node.engines.kv_events import KvBatch
from smg_node.fleet.models.served_model import AnyModel, ServedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.routing.kv_index.block_hash import Roots, seed_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower, Verdict
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.kv_index.prompt_lookup import Assumed, PromptLookup, PromptLookups
from smg_node.routing.policy import Beginning

SETTLED_BLOCKS: Final = 1_024
"""A worker with so many blocks is no longer one that begins with an empty cache."""

COUNTED: Final = ("gaps", "resyncs", "orphans", "refused", "confused")


class Prefixes:
    """The prefix caches of all workers, as far as this node knows. See
    `engine_subscriptions.KvEventSink` and `placement_request.Beginnings`.
    """

    def __init__(
        self,
        index: PrefixIndex,
        *,
        cluster: str,
    ) -> None:
        """Take the index, and the name all nodes of the cluster share."""
        self.index: Final = index
        self._seed = seed_of(cluster)
        self._beginnings = PromptLookups(index)
        self._roots: dict[str, Roots] = {}
        self._followed: dict[str, tuple[Worker, ServedModel, KvFollower]] = {}
        self._past: Counter[str] = Counter()
        """What followers counted that are no more."""

    def tell_assumed(self, on_assumed: Assumed) -> None:
        """Set the callback for assumptions about workers without events, made because this node
        sent a prompt there.
        """
        self._beginnings = PromptLookups(self.index, on_assumed=on_assumed)

    def counts(self) -> Mapping[str, int]:
        """Return what all followers counted since the start, by its name in `KvFollower`."""
        counts = Counter(self._past)
        for _, _, follower in self._followed.values():
            counts.update(_counts_of(follower))
        return counts

    # ── What placement asks and tells ────────────────────────────────────────

    def of(
        self,
        model: AnyModel,
        ids: TokenIds,
        adapter: str,
        now_s: float,
        places: Sequence[tuple[str, int]] = (),
    ) -> Beginning | None:
        """Return the lookup of a prompt of `model` in the index at that time; `places` are those of its pictures."""
        roots = self._roots.get(model.pool)
        if roots is None or roots.tokenizer_digest != model.bundle_digest:
            roots = self._root(model)
        root = roots(adapter) if adapter else roots.bare
        return self._beginnings.of(root, ids, now_s, places)

    def dispatched(
        self, beginning: Beginning, worker: str, now_s: float, *, rank: int | None = None
    ) -> None:
        """Record that `worker` has computed that prompt; a worker with a subscription reports it
        itself, unless there are pictures in it, which few engines name in their events: what those that do
        confirm goes before it.
        """
        assert type(beginning) is PromptLookup, "what `of` returned"
        if not beginning.blocks:
            return
        followed = self._followed.get(worker)
        if followed is None or not followed[0].following or beginning.media:
            self._beginnings.dispatched(beginning, worker, now_s, rank=rank)

    def answered(
        self,
        beginning: Beginning,
        ids: TokenIds,
        worker: str,
        now_s: float,
        *,
        rank: int | None = None,
    ) -> None:
        """Record that `worker` has answered that prompt with `ids`; a worker with a subscription
        reports it itself, unless there are pictures in it.
        """
        assert type(beginning) is PromptLookup, "what `of` returned"
        # Of most answers there is nothing to say: they end no block, and the prompt was assumed a moment ago.
        if len(ids) < beginning.room and beginning.assumed(worker, rank, now_s):
            return
        followed = self._followed.get(worker)
        if followed is None or not followed[0].following or beginning.media:
            self._beginnings.answered(beginning, ids, worker, now_s, rank=rank)

    # ── What the fleet hears ─────────────────────────────────────────────────

    def start(self, worker: Worker) -> int:
        """See `KvEventSink`: the last subscription's position, or 0 for a new cache."""
        return self._follower(worker).start

    def batch(self, worker: Worker, batch: KvBatch, now_s: float) -> bool:
        """See `KvEventSink`."""
        known = self._followed.get(worker.id)
        if known is None or known[0] is not worker:
            return False
        again = known[2].feed(batch, now_s) is Verdict.RESYNC
        if worker.load.fresh_until_s > now_s and self.index.blocks(worker.id) >= SETTLED_BLOCKS:
            worker.load.settled()
        return again

    def lost(self, worker: Worker, code: str) -> None:
        """See `KvEventSink`."""
        known = self._followed.get(worker.id)
        if known is not None and known[0] is worker:
            known[2].lost(code)

    def closed(self, worker: Worker, now_s: float) -> None:
        """See `KvEventSink`."""
        known = self._followed.get(worker.id)
        if known is not None and known[0] is worker:
            known[2].closed(now_s)

    def relieved(self, worker: Worker) -> None:
        """See `KvEventSink`: events of other nodes count from now on, and our own for a while as a
        guess.
        """
        known = self._followed.get(worker.id)
        if known is not None and known[0] is worker:
            self._drop(worker.id)
            self.index.doubt(worker.id, worker.heard_s)
            self.index.set_stale(worker.id, None)

    def gone(self, worker: Worker) -> None:
        """See `KvEventSink`."""
        known = self._followed.get(worker.id)
        if known is None or known[0] is worker:
            self._forget(worker.id)

    def tick(self, now_s: float) -> None:
        """See `KvEventSink`: old assumptions expire, and dead entries are removed, a slice at a
        time.
        """
        self.index.tick(now_s)
        self.index.sweep()

    def _follower(self, worker: Worker) -> KvFollower:
        model = worker.model
        assert model is not None, "a ready worker has a model"
        known = self._followed.get(worker.id)
        if known is not None:
            if known[0] is worker and known[1] is model:
                return known[2]
            self._forget(worker.id)
        follower = KvFollower(worker.id, self.index, root=self._root(model))
        self._followed[worker.id] = (worker, model, follower)
        return follower

    def _forget(self, worker_id: WorkerId) -> None:
        self._drop(worker_id)
        self.index.forget(worker_id)

    def _drop(self, worker_id: WorkerId) -> None:
        known = self._followed.pop(worker_id, None)
        if known is not None:
            self._past.update(_counts_of(known[2]))

    def _root(self, model: AnyModel) -> Roots:
        digest = model.bundle_digest
        known = self._roots.get(model.pool)
        if known is None or known.tokenizer_digest != digest:
            known = self._roots[model.pool] = Roots(model.name, digest, seed=self._seed)
        return known


def _counts_of(follower: KvFollower) -> dict[str, int]:
    return {name: getattr(follower, name) for name in COUNTED}
