"""Engine on virtual time: continuous batching over a real KV block table.

It behaves as `engine_sizes` says and keeps its prefix cache in the simulated engine's own
`BlockTable`, so that what is cached, shared, copied and evicted is not a model of a model. A step
is one event however many requests run in it: the end of each request is known when it begins, and
contexts are summed.
"""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from smg_chaos.engine.cache.blocks import BlockTable, Change, chain
from smg_chaos.routing.model.engine_sizes import EngineSize
from smg_chaos.routing.model.virtual_clock import Agenda
from smg_node.engines.load import Load


class Job:
    """One request at an engine. `ids` are prompt and answer, of which the first `prompt` are the prompt."""

    __slots__ = (
        "answer",
        "blocks",
        "cached",
        "computed",
        "ended",
        "expected",
        "first",
        "found",
        "ids",
        "keys",
        "prompt",
    )

    def __init__(
        self,
        ids: "array[int]",
        prompt: int,
        keys: Sequence[int],
        *,
        first: Callable[["Job"], None],
        ended: Callable[["Job"], None],
    ) -> None:
        assert 0 < prompt < len(ids)
        self.ids = ids
        self.prompt = prompt
        self.keys = keys
        """Of the whole blocks of `ids`, as the engine hashes them."""
        self.answer = len(ids) - prompt
        self.first = first
        self.ended = ended
        self.cached = 0
        """Tokens that it found in the cache."""
        self.expected = 0
        """Tokens that would have been found when it came."""
        self.computed = 0
        self.found = 0
        self.blocks: list[int] = []


Heard: TypeAlias = Callable[["Engine", Sequence[Change]], None]


class Engine:
    """Queues jobs and computes them; `heard` is called with the changes of its cache after each
    step.
    """

    def __init__(self, name: str, size: EngineSize, agenda: Agenda, heard: Heard) -> None:
        self.name = name
        self.size = size
        self.open = 0
        """Jobs that wait or run."""
        self.pending = 0
        """Prompt tokens of those that have not got their first token, less what is cached."""
        self.step_ends_s = 0.0
        self.open_seconds = 0.0
        """Jobs times seconds, so far."""
        self._agenda = agenda
        self.heard = heard
        self._blocks = BlockTable(size.blocks, size.block)
        self._waiting: deque[Job] = deque()
        self._prefilling: deque[Job] = deque()
        self._ends: list[tuple[int, int, Job]] = []
        self._running = 0
        self._context = 0
        self._steps = 0
        self._begun = 0
        self._busy = False
        self._counted_s = 0.0

    # ── From outside ─────────────────────────────────────────────────────────

    def submit(self, job: Job) -> None:
        """Queue a job."""
        self.count()
        self.open += 1
        job.expected = self.overlap(job.keys, job.prompt)
        self.pending += job.prompt - job.expected
        self._waiting.append(job)
        if not self._busy:
            self._step()

    def overlap(self, keys: Sequence[int], prompt: int) -> int:
        """Return how many tokens of a prompt it would find in its cache now."""
        usable = (prompt - 1) // self.size.block
        return len(self._blocks.match(keys[:usable])) * self.size.block

    def load(self) -> Load:
        """Return its load report."""
        waiting = len(self._waiting)
        return Load(
            rank=0,
            running=self.open - waiting,
            waiting=waiting,
            running_max=self.size.slots,
            waiting_uncached_tokens=sum(job.prompt for job in self._waiting),
            kv_usage=self._blocks.used / self._blocks.count,
            tokens_per_s=None,
            cache_hit_rate=None,
            prefill_pending_tokens=self.pending,
        )

    def count(self) -> None:
        """Update `open_seconds` to now."""
        now_s = self._agenda.now_s
        self.open_seconds += self.open * (now_s - self._counted_s)
        self._counted_s = now_s

    # ── Steps ────────────────────────────────────────────────────────────────

    def _step(self) -> None:
        """Begin a step, if there is anything to do."""
        self._admit()
        chunk = self._chunk()
        self._busy = bool(self._running or chunk)
        if self._busy:
            seconds = self.size.step_s(self._running, self._context, sum(n for _, n in chunk))
            self.step_ends_s = self._agenda.now_s + seconds
            self._agenda.at(self.step_ends_s, self._end_step, chunk)

    def _admit(self) -> None:
        waiting, block = self._waiting, self.size.block
        while waiting and self._running + len(self._prefilling) < self.size.slots:
            job = waiting[0]
            found = self._blocks.match(job.keys[: (job.prompt - 1) // block])
            claimed = self._blocks.claim(found, -(-len(job.ids) // block) - len(found))
            if claimed is None:
                return
            waiting.popleft()
            job.blocks = claimed
            job.found = len(found)
            job.cached = job.computed = len(found) * block
            self.pending += job.expected - job.cached
            self._prefilling.append(job)

    def _chunk(self) -> list[tuple[Job, int]]:
        """Return the job whose prompt is computed in this step, and how many tokens of it."""
        room, chunk = self.size.chunk_tokens, []
        for job in self._prefilling:
            if not room:
                break
            taken = min(room, job.prompt - job.computed)
            room -= taken
            chunk.append((job, taken))
        return chunk

    def _end_step(self, chunk: list[tuple[Job, int]]) -> None:
        self._steps += 1
        self._context += self._running
        while self._ends and self._ends[0][0] <= self._steps:
            self._end(heappop(self._ends)[2])
        for job, taken in chunk:
            job.computed += taken
            self.pending -= taken
            if job.computed == job.prompt:
                assert self._prefilling[0] is job
                self._prefilling.popleft()
                self._begin(job)
        changes = self._blocks.changes()
        if changes:
            self.heard(self, changes)
        self._step()

    def _begin(self, job: Job) -> None:
        """Start the answer: the prompt is computed and the first token made."""
        self._fill(job, job.found, job.prompt // self.size.block)
        self._running += 1
        self._context += job.prompt + 1
        self._begun += 1
        if job.answer > 1:
            heappush(self._ends, (self._steps + job.answer - 1, self._begun, job))
        job.first(job)
        if job.answer == 1:
            self._end(job)

    def _end(self, job: Job) -> None:
        self.count()
        self.open -= 1
        self._running -= 1
        self._context -= len(job.ids)
        self._fill(job, job.prompt // self.size.block, len(job.ids) // self.size.block)
        self._blocks.release(job.blocks)
        job.ended(job)

    def _fill(self, job: Job, begin: int, end: int) -> None:
        """Keep whole blocks of a job."""
        if begin < end:
            block = self.size.block
            self._blocks.fill(
                job.blocks[begin:end],
                job.keys[begin:end],
                job.ids[begin * block : end * block],
                job.keys[begin - 1] if begin else None,
            )


def keys_of(ids: Sequence[int], size: EngineSize) -> list[int]:
    """Return the hashes of the whole blocks of a prompt, as engines of this size have them."""
    return chain(ids, size.block)
