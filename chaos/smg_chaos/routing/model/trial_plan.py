"""Trial plan: the policy, the numbers of nodes and engines, and the load of one trial."""

from dataclasses import dataclass, field
from typing import Final

from smg_chaos.routing.model.engine_sizes import EngineSize
from smg_chaos.routing.model.workload import TURNS_MEAN
from smg_node.routing.policy import CacheMode, PolicyOptions

OMNISCIENT: Final = "omniscient"
THRESHOLD: Final = "threshold"
"""`cache_aware` by thresholds and own dispatches alone, as gateways have it that keep a tree for themselves."""
OWN: Final = "cache_aware-own"
"""`cache_aware` before engines that say nothing of their caches."""
CACHE_AWARE: Final = "cache_aware"
POLICIES: Final = (
    "round_robin",
    "random",
    "power_of_two",
    "least_load",
    "prefix_hash",
    "consistent_hashing",
    THRESHOLD,
    OWN,
    CACHE_AWARE,
    OMNISCIENT,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One trial. `per_engine_s` are requests a second for each engine, on average."""

    policy: str
    node_count: int = 1
    engine_count: int = 8
    per_engine_s: float = 2.5
    seconds: float = 600.0
    warm_s: float = 120.0
    """What comes earlier is not counted: caches are being filled."""
    seed: int = 1
    size: EngineSize = field(default_factory=EngineSize)

    @property
    def nodes(self) -> list[str]:
        """The nodes' names."""
        return [f"node-{number}" for number in range(self.node_count)]

    @property
    def engines(self) -> list[str]:
        """The engines' names."""
        return [f"engine-{number:02}" for number in range(self.engine_count)]

    @property
    def sessions_per_s(self) -> float:
        """How many sessions begin a second."""
        return self.per_engine_s * self.engine_count / TURNS_MEAN

    @property
    def policy_name(self) -> str:
        """The policy's name in the node's registry."""
        return CACHE_AWARE if self.has_index else self.policy

    @property
    def has_index(self) -> bool:
        """Whether nodes keep an index of prefixes."""
        return self.policy in (CACHE_AWARE, OWN, THRESHOLD)

    @property
    def has_events(self) -> bool:
        """Whether engines publish KV events to nodes."""
        return self.policy == CACHE_AWARE

    @property
    def shares(self) -> bool:
        """Whether nodes send each other their cache knowledge."""
        return self.policy in (CACHE_AWARE, OWN) and self.node_count > 1

    def options(self, node: str) -> PolicyOptions:
        """Return the options of a node's policy."""
        mode: CacheMode = "threshold" if self.policy == THRESHOLD else "cost"
        return PolicyOptions(node=node, cache_mode=mode)
