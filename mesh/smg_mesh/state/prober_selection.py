"""Prober selection: the few nodes that probe a worker, the same on every node (rendezvous hashing).

Rendezvous hashing: each node draws a number for a worker, BLAKE2b of both names, and the largest win. When a
node leaves, only what it had won moves; when one comes, it takes its share from all alike. From
"Using Name-Based Mappings to Increase Hit Rates" (1998).
"""

from collections.abc import Sequence
from hashlib import blake2b


def probers(
    worker_id: str,
    nodes: Sequence[tuple[str, str]],
    *,
    zone: str = "",
    count: int = 2,
    all_up_to: int = 3,
) -> tuple[str, ...]:
    """Return the names of the nodes that look after a worker, the best first.

    `nodes` are (name, zone), in any order; those of the worker's own `zone` come before all others.
    Of at most `all_up_to` nodes all look. A worker without a zone is as near to all.
    """
    assert count > 0
    zones = dict(nodes)
    ranked = sorted(
        zones,
        key=lambda name: (zone != "" and zones[name] != zone, -_draw(worker_id, name), name),
    )
    return tuple(ranked if len(ranked) <= all_up_to else ranked[:count])


def _draw(worker_id: str, name: str) -> int:
    """Return the number that a node draws for a worker: 64 bits."""
    said = f"{len(name)}:{name}{worker_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "big")
