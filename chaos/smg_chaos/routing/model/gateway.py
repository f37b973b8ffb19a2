"""Gateway node on virtual time: the real policy over real load views, as the node's placer uses
them.

A placement is one step: candidates are filtered (not full, not overloaded while another is not),
the policy chooses, the load is counted at once. Reports of other nodes and engines come later,
through `world`.
"""

from array import array
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from smg_chaos.routing.model.cache_knowledge import Knowledge
from smg_chaos.routing.model.engine import Job
from smg_node.engines.load import Load
from smg_node.fleet.load.prefill_rate import UsualRates
from smg_node.fleet.load.worker_load import PREFILL_RATE, WorkerLoad
from smg_node.routing.costs import uncached
from smg_node.routing.hash_ring import Ring
from smg_node.routing.kv_index.prompt_lookup import PromptLookup
from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool

MODEL: Final = "llama-70b"


class Placed:
    """A request that was sent to a worker, and the callbacks for its progress."""

    __slots__ = ("_ahead", "_load", "_node", "_prompt", "_since_s", "_tokens", "worker")

    def __init__(
        self,
        node: "Gateway",
        load: WorkerLoad,
        tokens: int,
        prompt: PromptLookup | None,
        now_s: float,
    ) -> None:
        self.worker = load.worker
        self._node = node
        self._load = load
        self._tokens = tokens
        self._prompt = prompt
        self._since_s = now_s
        self._ahead = load.begin(tokens)

    def first(self, job: Job, now_s: float) -> None:
        """Note that the first token came."""
        load = self._load
        load.prefilled(self._tokens)
        if self._ahead >= 0:
            computed = self._ahead + job.prompt - job.cached
            load.rate(computed, now_s - self._since_s, now_s=now_s)
        self._node.knowledge.dispatched(self._prompt, self.worker, now_s)

    def ended(self, job: Job, now_s: float) -> None:
        """Note that the answer is complete."""
        answer = job.ids[job.prompt :]
        self._node.knowledge.answered(self._prompt, answer, self.worker, now_s)
        self._load.end(self._tokens, prefilled=True, seconds=now_s - self._since_s)


class Gateway:
    """One gateway node."""

    def __init__(
        self,
        name: str,
        workers: Sequence[str],
        policy: str,
        knowledge: Knowledge,
        rng: Random,
        *,
        options: PolicyOptions,
        slots: int,
    ) -> None:
        self.name = name
        self.knowledge = knowledge
        self._rng = rng
        self._loads = {worker: WorkerLoad(worker) for worker in sorted(workers)}
        self._known = [(worker, 1.0) for worker in self._loads]
        self._ring = Ring(self._known)
        self._policy = Policies(OwnBindings(), options).named(policy)
        self._peers: dict[str, Mapping[str, tuple[int, int]]] = {}
        self._pool: Pool | None = None
        self._usual_rates = UsualRates()
        for load in self._loads.values():
            load.changed = self._changed
            load.sized(slots)
            load.renewed(0.0)

    def _changed(self) -> None:
        self._pool = None

    def place(self, ids: "array[int]", client: str, now_s: float) -> Placed:
        """Choose a worker for a prompt, and count it in."""
        pool = self._candidates()
        prompt = self.knowledge.of(ids, now_s)
        asked = Asked(MODEL, client=client, ids=ids, now_s=now_s, beginning=prompt)
        at = self._policy.choose(asked, pool, self._rng)
        load = self._loads[pool.candidates[at].worker]
        return Placed(self, load, uncached(asked, pool, at, len(ids)), prompt, now_s)

    def _candidates(self) -> Pool:
        if self._pool is None:
            loads = list(self._loads.values())
            for worse in ("stuck", "full", "overloaded"):
                loads = [load for load in loads if not getattr(load, worse)] or loads
            self._pool = Pool(loads, self._known, self._ring)
        return self._pool

    def overlaps(self, ids: "array[int]", now_s: float) -> list[float]:
        """Return for each worker, by name, how many tokens of a prompt it has cached as far as this node knows."""
        prompt = self.knowledge.of(ids, now_s)
        pool = Pool(list(self._loads.values()), self._known, self._ring)
        return [0.0] * len(self._loads) if prompt is None else list(prompt.overlaps(pool))

    # ── What comes from outside ──────────────────────────────────────────────

    def open(self) -> dict[str, tuple[int, int]]:
        """Return the open requests of this node, and their tokens that are not yet computed."""
        return {
            load.worker: (load.own_inflight, load.own_tokens)
            for load in self._loads.values()
            if load.own_inflight
        }

    def hear(self, peer: str, open_there: Mapping[str, tuple[int, int]]) -> None:
        """Apply another node's report of its open requests."""
        self._peers[peer] = open_there
        for worker, load in self._loads.items():
            said = [peer_open.get(worker, (0, 0)) for peer_open in self._peers.values()]
            load.hear(sum(requests for requests, _ in said), sum(tokens for _, tokens in said))

    def sample(self, worker: str, load: Load, now_s: float) -> None:
        """Apply an engine's load report."""
        self._loads[worker].sample(load, now_s)

    def tick(self, now_s: float) -> None:
        """Advance by a second."""
        measured = [(MODEL, load.measured) for load in self._loads.values()]
        self._usual_rates.take(measured, first=PREFILL_RATE)
        for load in self._loads.values():
            load.tick(now_s, self._usual_rates.of(MODEL, first=PREFILL_RATE))
            if self.knowledge.holds_enough(load.worker):
                load.settled()
        self.knowledge.tick(now_s)
