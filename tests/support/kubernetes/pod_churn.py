"""Pods that change all the time: who changes them, and who looks how soon and how dearly that is registered."""

import asyncio
import resource
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from smg_node.discovery.known import Known
from smg_node.discovery.sighting import SightingState
from support.kubernetes.kube_client import KubeClient

SPACE: Final = "serving"
LABELS: Final = {"app": "vllm"}
PORT: Final = 50_051
AT_ONCE: Final = 16
REPLACED_EVERY: Final = 10
"""One change in so many is another pod at the same address; all others are readiness."""
LATE_S: Final = 10.0
"""A flip is written after 5 s at the latest, and a crowded machine is given as much again."""
_LOOK_S: Final = 0.25
_PAGE_KB: Final = resource.getpagesize() // 1024

Wanted: TypeAlias = tuple[SightingState, str]
"""State of an endpoint, and the uid of its pod."""


@dataclass(slots=True)
class Churn:
    """Changes of `count` pods, `per_minute` of them, made by a client in a thread of its own until `stop`."""

    base: str
    count: int
    per_minute: int
    rng: Random
    made: deque[tuple[float, str, Wanted]] = field(default_factory=deque)
    """What was changed, and when: taken from the left by whoever looks."""
    truth: dict[str, Wanted] = field(default_factory=dict)
    changes: int = 0
    up: threading.Event = field(default_factory=threading.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the pods, and then change them."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Change no more; what was made is in `made`."""
        self._stopped.set()
        assert self._thread is not None
        self._thread.join(60)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        client = KubeClient(self.base)
        try:
            gate = asyncio.Semaphore(AT_ONCE)

            async def make(number: int) -> None:
                async with gate:
                    await self._make(client, number, 0)

            await asyncio.gather(*map(make, range(self.count)))
            self.up.set()
            names = dict.fromkeys(range(self.count), 0)
            begun_s = time.monotonic()
            while not self._stopped.is_set():
                due = int((time.monotonic() - begun_s) * self.per_minute / 60)
                if self.changes >= due:
                    await asyncio.sleep(0.02)
                    continue
                self.changes += 1
                number = self.rng.randrange(self.count)
                if self.changes % REPLACED_EVERY == 0:
                    await client.delete(SPACE, f"vllm-{number}-{names[number]}", grace_s=0)
                    names[number] += 1
                    await self._make(client, number, names[number])
                else:
                    await self._flip(client, number, names[number])
        finally:
            await client.close()

    async def _make(self, client: KubeClient, number: int, life: int) -> None:
        ip = _address(number)
        made = await client.pod(f"vllm-{number}-{life}", namespace=SPACE, labels=LABELS, ip=ip)
        self._note(number, (SightingState.READY, str(made["metadata"]["uid"])))

    async def _flip(self, client: KubeClient, number: int, life: int) -> None:
        state, uid = self.truth[_endpoint(number)]
        ready = state is not SightingState.READY
        await client.runs(SPACE, f"vllm-{number}-{life}", ip=_address(number), is_ready=ready)
        self._note(number, (SightingState.READY if ready else SightingState.UNREADY, uid))

    def _note(self, number: int, wanted: Wanted) -> None:
        endpoint = _endpoint(number)
        self.truth[endpoint] = wanted
        self.made.append((time.monotonic(), endpoint, wanted))


@dataclass(slots=True)
class Watched:
    """What was seen of the writer meanwhile. Times are seconds, memory is KiB."""

    taken_s: list[float] = field(default_factory=list)
    """From a change to its entry, of those that no later one overtook."""
    late: int = 0
    samples: list[tuple[float, float, int, int]] = field(default_factory=list)
    """Moment, processor time of this thread, memory of the process, bytes of documents."""
    pending: dict[str, tuple[float, Wanted]] = field(default_factory=dict)
    _looking_s: float = 0.0
    """Processor time that looking itself has taken, which is none of the writer's."""

    def look(self, churn: Churn, known: Mapping[str, Known]) -> None:
        """Take what was changed, and see what of it is registered."""
        begun_s = time.thread_time()
        while churn.made:
            at_s, endpoint, wanted = churn.made.popleft()
            self.pending[endpoint] = (at_s, wanted)
        now_s = time.monotonic()
        for endpoint, (at_s, wanted) in list(self.pending.items()):
            entry = known.get(endpoint)
            if entry is not None and (entry.state, entry.instance) == wanted:
                self.taken_s.append(now_s - at_s)
                self.late += now_s - at_s > LATE_S
                del self.pending[endpoint]
        self._looking_s += time.thread_time() - begun_s

    def sample(self, document_bytes: int) -> None:
        """Note what it costs so far."""
        spent_s = time.thread_time() - self._looking_s
        self.samples.append((time.monotonic(), spent_s, _memory_kb(), document_bytes))

    async def until(
        self, over: Callable[[], bool], churn: Churn, known: Callable[[], Mapping[str, Known]]
    ) -> None:
        """Look again and again until that holds."""
        while not over():
            self.look(churn, known())
            await asyncio.sleep(_LOOK_S)

    def summary(self) -> Mapping[str, object]:
        """Return all of it in numbers, for who reads it."""
        taken_s = sorted(self.taken_s)
        documents = [size for *_, size in self.samples]
        return {
            "missed": len(self.pending),
            "late": self.late,
            "median_s": round(taken_s[len(taken_s) // 2], 2),
            "longest_s": round(taken_s[-1], 2),
            "cpu_percent_of_a_core": round(100 * self.cpu_share, 2),
            "memory_kb": [self.samples[0][2], self.samples[-1][2]],
            "memory_kb_per_minute": round(self.memory_slope, 1),
            "memory_kb_per_minute_in_the_second_half": round(
                _slope([(one[0] / 60, one[2]) for one in self.samples[len(self.samples) // 2 :]]), 1
            ),
            "document_bytes": [documents[0], max(documents), documents[-1]],
        }

    @property
    def cpu_share(self) -> float:
        """Processor time of the thread by the time that passed, between the first and the last sample."""
        first, last = self.samples[0], self.samples[-1]
        return (last[1] - first[1]) / (last[0] - first[0])

    @property
    def memory_slope(self) -> float:
        """KiB a minute, by least squares."""
        return _slope([(at_s / 60, memory) for at_s, _, memory, _ in self.samples])


def _slope(points: Sequence[tuple[float, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    across = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / across if across else 0.0


def _memory_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE_KB


def _address(number: int) -> str:
    return f"10.7.{number // 250}.{number % 250 + 1}"


def _endpoint(number: int) -> str:
    return f"{_address(number)}:{PORT}"
