"""History parts: what the services of conversations and responses are made of."""

from collections.abc import Callable
from dataclasses import dataclass, field

from smg_node.core.ports import Clock, Rng
from smg_node.history.peers.peer_interface import NoPeers, Peers
from smg_node.history.ports import HistoryOptions, Keeper, Measures, Threads, Vault
from smg_node.history.runs.run_registry import RegisteredRuns
from smg_node.history.service.resumed_streams import ResumedStreams
from smg_node.history.turns.quotas import Quotas
from smg_node.pipeline.generation.run_interface import Generations


@dataclass(frozen=True, slots=True)
class HistoryParts:
    """What history is made of; built once."""

    keeper: Keeper
    generations: Generations
    measures: Measures
    vault: Vault
    clock: Clock
    rng: Rng
    options: HistoryOptions
    runs: RegisteredRuns
    quotas: Quotas
    resumed: ResumedStreams
    """Counts streams that clients go on with."""
    chain_depth: Callable[[int], None] = lambda depth: None
    """Told how many responses one goes on from that does so."""
    named: Callable[[str, str], None] = lambda response_id, request_id: None
    """Told of each response, and of the request that it answers."""
    threads: Threads | None = None
    """Who says to which thread something belongs; None where all nodes share the store."""
    peers: Peers = field(default_factory=NoPeers)
    """The other nodes."""
