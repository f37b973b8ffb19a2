"""Worker cleanup: clears away entries about workers that count for
nothing, and seals API keys anew.

    beaten by a removal, own       at once; a listing, and what a shared source found, is rewritten as withheld: it
                                   remembers what was listed or found
    beaten by a removal, others'   by the node whose removal counts, when that is old
    of a worker without sources    its patch and drain, by their owner, a minute later
    listings of a forgotten node   those that nothing needs, by one of the living

Others' entries wait, because clearing them away takes a write of another node, and a write is later than
whatever the other side of a partition has said meanwhile. They must not wait for ever: when a removal is
forgotten, nothing that it beat may be left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Namespace, StateError
from smg_mesh.state.prober_selection import probers
from smg_mesh.state.workers.worker_record import Part, Parts
from smg_mesh.state.workers.worker_spec import encode_source


def tidy(
    namespace: Namespace,
    workers: Sequence[Parts],
    *,
    me: str,
    living: Sequence[str] = (),
    settled_ms: int = 0,
    orphaned_ms: int = 0,
    writes_max: int = 256,
) -> int:
    """Clear away what counts for nothing of these workers; return how many writes it took.

    `settled_ms`: removals before that time are old; `orphaned_ms`: so are orphans.
    """
    writes = 0
    for parts in workers:
        if writes >= writes_max:
            break
        removal = namespace.latest(parts.worker_id)
        old = removal is not None and hlc_ms(removal.version) < settled_ms
        all_mine = removal is not None and old and me == _settler(removal, living)
        for part in parts.beaten:
            held = namespace.get(str(part.key))
            if held is not None and (held.owner == me or all_mine):
                writes += _clear(namespace, part, held, me)
        for part in parts.orphans:
            held = namespace.get(str(part.key))
            if held is not None and held.owner == me and hlc_ms(held.version) < orphaned_ms:
                writes += _remove(namespace, held)
    return writes


def _settler(removal: Held, living: Sequence[str]) -> str:
    """Return which node clears away what a removal beat: its writer,
    or for a dead one another node.
    """
    if removal.owner in living or not living:
        return removal.owner
    return probers(removal.key, [(node, "") for node in living], count=1, all_up_to=1)[0]


def forget_listings(namespace: Namespace, workers: Iterable[Parts], node: str) -> int:
    """Remove what a node listed that is gone for good, unless a worker would go with it."""
    writes = 0
    for parts in workers:
        mine = [part for part in parts.live.values() if part.is_listing_of(node)]
        for part in mine:
            held = namespace.get(str(part.key))
            needed = parts.record is not None and parts.record.sources == (part.key.part,)
            if held is None or needed:
                continue
            writes += _remove(namespace, held)
    return writes


def _clear(namespace: Namespace, part: Part, held: Held, me: str) -> int:
    """Write what makes one beaten entry harmless; 0 if there is no room for it now."""
    if part.is_remembered and part.said is not None:
        marked = encode_source(replace(part.said, withheld=True), onto=held.value or b"")
        return _put(namespace, held, marked)
    if held.owner == me:
        namespace.retire(held.key)
        return 1
    return _remove(namespace, held)


def _put(namespace: Namespace, held: Held, value: bytes) -> int:
    try:
        namespace.put(held.key, value, seen=held.version)
    except StateError:
        return 0
    return 1


def _remove(namespace: Namespace, held: Held) -> int:
    try:
        namespace.remove(held.key, seen=held.version)
    except StateError:
        return 0
    return 1


def reseal(
    namespace: Namespace,
    workers: Iterable[Parts],
    renew: Callable[[bytes], bytes | None],
    mine: Callable[[str], bool],
    *,
    writes_max: int,
) -> int:
    """Write sealed keys anew where `renew` gives other bytes; return how many were written."""
    found = list(islice(_resealed(namespace, workers, renew, mine), writes_max))
    return sum(_put(namespace, held, value) for held, value in found)


def _resealed(
    namespace: Namespace,
    workers: Iterable[Parts],
    renew: Callable[[bytes], bytes | None],
    mine: Callable[[str], bool],
) -> Iterator[tuple[Held, bytes]]:
    """Yield the entries to write, each with its new value."""
    for parts in workers:
        for name in sorted(parts.live):
            said = parts.live[name].said
            held = namespace.get(str(parts.live[name].key))
            if said is None or not said.sealed_key or held is None or not mine(held.owner):
                continue
            sealed = renew(said.sealed_key)
            if sealed is not None and sealed != said.sealed_key:
                renewed = replace(said, fields={**said.fields, "sealed_key": sealed})
                yield held, encode_source(renewed, onto=held.value or b"")
