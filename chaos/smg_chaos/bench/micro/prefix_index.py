"""Prefix index benchmark (`smg-chaos prefix-index`): CPU time and memory of the prefix-cache index.

The prompts are those of the goal: 4,600 tokens each, in families that share their first 1,216
tokens; the rest is different in each. Each prompt is hashed, looked up among 16 workers, and then
recorded as sent to one of them, as a request is: the times are of that, prompt by prompt, while the
index fills. Then engines publish KV events of the same prompts, a whole prompt at a time, and the
times are per engine block.

Times are CPU times of the thread; memory is what the interpreter allocated (`tracemalloc`), in a
run of its own, and the pages of the index's table.
"""

import gc
import json
import time
import tracemalloc
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Annotated, Any, Final

import typer

from smg_node.core.generation.request import TokenIds
from smg_node.engines.kv_events import KvBatch, KvBlock, KvStored, Tier
from smg_node.native.block_table import BlockTable
from smg_node.routing.kv_index.block_hash import chain, root_of
from smg_node.routing.kv_index.kv_event_consumer import KvFollower
from smg_node.routing.kv_index.prefix_index import PrefixIndex

TOKENS: Final = 4_600
SHARED_TOKENS: Final = 1_216
WORKERS: Final = 16
MANY_WORKERS: Final = 64
ROOT: Final = root_of("bench", "", seed=1)


@dataclass(frozen=True, slots=True)
class Load:
    """Number of prompts, and of families."""

    prompts: int
    families: int

    def ids(self, seed: int = 1) -> Iterator[TokenIds]:
        """Yield the prompts, the same every time."""
        rng = Random(seed)
        shared = [array("I", rng.randbytes(4 * SHARED_TOKENS)) for _ in range(self.families)]
        for at in range(self.prompts):
            yield shared[at % self.families] + array(
                "I", rng.randbytes(4 * (TOKENS - SHARED_TOKENS))
            )


def _spread_us(times_ns: list[int]) -> dict[str, float]:
    times_ns.sort()
    places = {"p10_us": 10, "median_us": 50, "p99_us": 99}
    return {name: times_ns[len(times_ns) * at // 100] / 1e3 for name, at in places.items()}


def _fill(index: PrefixIndex, load: Load, note: Callable[[Sequence[int]], object]) -> None:
    """Send every prompt somewhere; `note` the times when it began, was hashed, matched and inserted.

    Looking at the clock costs nearly a microsecond, so every other prompt is only timed as a whole.
    """
    rng, now_ns = Random(2), time.thread_time_ns
    names = [f"worker-{at:02}" for at in range(WORKERS)]
    for at, ids in enumerate(load.ids()):
        worker = names[rng.randrange(WORKERS)]
        whole = at % 2 == 0
        times = [now_ns()]
        hashes = chain(ROOT, ids)
        if not whole:
            times.append(now_ns())
        index.match(hashes, 1.0)
        if not whole:
            times.append(now_ns())
        index.assume(worker, hashes, 1.0)
        times.append(now_ns())
        note(times)


def measure_index(load: Load) -> dict[str, Any]:
    """Return the cost of the index."""
    steps: tuple[list[int], ...] = ([], [], [])
    whole: list[int] = []

    def note(times: Sequence[int]) -> None:
        if len(times) == 2:
            whole.append(times[1] - times[0])
        else:
            for step, (start_ns, end_ns) in zip(steps, pairwise(times), strict=True):
                step.append(end_ns - start_ns)

    index = PrefixIndex()
    _fill(index, load, note)
    figures = index.figures()
    again = _match_again(index, load)
    del index
    table = BlockTable()
    memory = _memory(lambda: _filled(table, load)) + table.mapped_bytes
    return {
        "entries": figures.entries,
        "sets": figures.sets,
        "hash": _spread_us(steps[0]),
        "match": _spread_us(steps[1]),
        "insert": _spread_us(steps[2]),
        "all": _spread_us(whole),
        "match_held_by_64": again,
        "memory_mb": round(memory / 1e6, 1),
        "bytes_per_entry": round(memory / max(1, figures.entries)),
    }


def _match_again(index: PrefixIndex, load: Load) -> dict[str, float]:
    """Time the match of whole prompts whose shared part all workers hold."""
    times: list[int] = []
    for at, ids in zip(range(200), load.ids(), strict=False):
        hashes = chain(ROOT, ids)
        for worker in range(MANY_WORKERS) if at < load.families else ():
            shared = hashes[: SHARED_TOKENS // index.block]
            index.stored(f"worker-{worker:02}", shared, Tier.DEVICE, 1.0)
        index.match(hashes, 1.0)
        start_ns = time.thread_time_ns()
        index.match(hashes, 1.0)
        times.append(time.thread_time_ns() - start_ns)
    return _spread_us(times)


def _filled(table: BlockTable, load: Load) -> PrefixIndex:
    index = PrefixIndex(table=table)
    _fill(index, load, lambda *_: None)
    return index


def _memory(make: Callable[[], object]) -> int:
    """Return how many bytes the result keeps."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = make()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del made
    return kept


def _batches(load: Load, size: int) -> Iterator[KvBatch]:
    """Yield the KV events that an engine with blocks of that size would publish of the prompts, one
    batch a prompt.
    """
    name, known = 0, dict[int, tuple[int, int]]()
    for at, ids in enumerate(load.ids()):
        family = at % load.families
        shared, parent = known.get(family, (0, None))
        names = range(name + 1, name + 1 + (len(ids) // size) - shared)
        name = names.stop
        if family not in known:
            known[family] = SHARED_TOKENS // size, names[SHARED_TOKENS // size - 1]
        blocks = tuple(
            KvBlock(one * 0x9E3779B97F4A7C15 % 2**63, ids[start * size : (start + 1) * size])
            for start, one in enumerate(names, shared)
        )
        above = None if parent is None else parent * 0x9E3779B97F4A7C15 % 2**63
        yield KvBatch(at, (KvStored(above, blocks),))


def measure_follower(size: int, load: Load) -> dict[str, Any]:
    """Return the cost of following one engine with blocks of that size."""
    times: list[int] = []
    blocks = 0
    follower = _follower(load, size)
    for batch in _batches(load, size):
        start_ns = time.thread_time_ns()
        follower.feed(batch, 1.0)
        times.append((time.thread_time_ns() - start_ns) * 1000)
        event = batch.events[0]
        assert isinstance(event, KvStored)
        blocks += len(event.blocks)
        times[-1] //= len(event.blocks)
    assert follower.blocks == blocks
    assert follower.confused == follower.refused == follower.orphans == 0
    del follower

    def follow() -> KvFollower:
        made = _follower(load, size)
        for batch in _batches(load, size):
            made.feed(batch, 1.0)
        return made

    times.sort()
    memory = _memory(follow)
    return {
        "engine_block": size,
        "blocks": blocks,
        "median_us": round(times[len(times) // 2] / 1e6, 2),
        "bytes_per_block": round(memory / blocks),
    }


def _follower(load: Load, size: int) -> KvFollower:
    index = PrefixIndex()
    return KvFollower("worker", index, root=lambda adapter, salt: ROOT)


def table(indexes: Sequence[dict[str, Any]], followers: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["index: CPU us of a prompt, median (p10, p99)"]
    for row in indexes:
        times = "  ".join(
            f"{name} {row[name]['median_us']:.1f} ({row[name]['p10_us']:.1f}, {row[name]['p99_us']:.1f})"
            for name in ("hash", "match", "insert", "all", "match_held_by_64")
        )
        lines.append(
            f"  {times}; {row['memory_mb']} MB, {row['entries']} entries "
            f"of {row['bytes_per_entry']} B, {row['sets']} sets"
        )
    lines.append("follower: CPU us of an engine block, bytes of it, index included")
    lines += [
        f"  blocks of {row['engine_block']:3}: {row['median_us']:5.2f} us, "
        f"{row['bytes_per_block']} B ({row['blocks']} blocks)"
        for row in followers
    ]
    return "\n".join(lines)


def prefix_index(
    prompts: Annotated[int, typer.Option(help="prompts of 4,600 tokens", min=100)] = 10_000,
    families: Annotated[int, typer.Option(help="different beginnings", min=1)] = 200,
    followed: Annotated[int, typer.Option(help="prompts an engine tells of", min=10)] = 500,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure the prefix index: hash, match and insert of a prompt, and memory."""
    load = Load(prompts, families)
    indexes = [measure_index(load)]
    told = Load(followed, min(families, followed))
    followers = [measure_follower(size, told) for size in (16, 32, 64)]
    if as_json:
        print(json.dumps({"index": indexes, "follower": followers}, indent=2))
    else:
        print(table(indexes, followers))


app: Final = typer.Typer(add_completion=False)
app.command(name="prefix-index")(prefix_index)
