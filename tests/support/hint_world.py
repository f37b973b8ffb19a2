"""Publishers and readers of hints on virtual time, over links that lose, repeat and reorder."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random

from smg_mesh.crdt.hint_reader import HintReader
from smg_mesh.crdt.hints import HintStream

Deliver = Callable[[Sequence[bytes]], Sequence[bytes]]


class DictStore:
    """Hints as sets, by owner and subject."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[str, str], set[int]] = defaultdict(set)

    def add(self, owner: str, subject: str, block_hash: int) -> None:
        self.hashes[owner, subject].add(block_hash)

    def remove(self, owner: str, subject: str, block_hash: int) -> None:
        self.hashes[owner, subject].discard(block_hash)

    def replace(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        self.hashes[owner, subject] = set(hashes)

    def drop(self, owner: str, subject: str) -> None:
        self.hashes.pop((owner, subject), None)

    def of(self, owner: str) -> dict[str, set[int]]:
        """Return what an owner said, by subject, without empty ones."""
        return {s: found for (who, s), found in self.hashes.items() if who == owner and found}


class Publisher:
    """A node with hints of its own."""

    def __init__(self, stream: int = 1, *, bytes_per_s: int = 65_536) -> None:
        self.hashes: dict[str, set[int]] = defaultdict(set)
        self.stream = HintStream(stream, contents=self._contents, bytes_per_s=bytes_per_s)

    def _contents(self, subject: str) -> Iterable[int]:
        return sorted(self.hashes[subject])

    def add(self, subject: str, *hashes: int) -> None:
        for block_hash in hashes:
            if block_hash not in self.hashes[subject]:
                self.hashes[subject].add(block_hash)
                self.stream.add(subject, block_hash)

    def remove(self, subject: str, *hashes: int) -> None:
        for block_hash in hashes:
            if block_hash in self.hashes[subject]:
                self.hashes[subject].discard(block_hash)
                self.stream.remove(subject, block_hash)

    def clear(self, subject: str) -> None:
        self.hashes[subject].clear()
        self.stream.clear(subject)

    def all(self) -> dict[str, set[int]]:
        return {subject: found for subject, found in self.hashes.items() if found}


class HintLink:
    """One publisher `p`, one reader `r`, and the way between them."""

    def __init__(self, publisher: Publisher | None = None, *, seed: int = 0) -> None:
        self.now_ms = 1_000
        self.publisher = publisher or Publisher()
        self.store = DictStore()
        self.gone: set[str] = set()
        self.reader = HintReader(self.store, wanted=lambda subject: subject not in self.gone)
        self.loss = 0.0
        self.disorder = False
        self.sent_bytes: list[tuple[int, int]] = []
        """What the publisher sent without being asked: when, how much."""
        self.asked = 0
        self._rng = Random(seed)

    def carry(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return what arrives of these messages."""
        arrived = [one for one in messages if self._rng.random() >= self.loss]
        if self.disorder:
            arrived += [one for one in arrived if self._rng.random() < 0.2]
            self._rng.shuffle(arrived)
        return arrived

    def turn(self, *, step_ms: int = 100) -> None:
        """Let some time pass, and everybody say what is due."""
        self.now_ms += step_ms
        told = list(self.publisher.stream.due("r", self.now_ms))
        self.sent_bytes.append((self.now_ms, sum(map(len, told))))
        asks = [message for _, message in self.reader.due(self.now_ms)]
        for message in self.carry(told):
            asks += self.reader.hear("p", message, now_ms=self.now_ms)
        for _ in range(300):
            if not asks:
                break
            asks = self._ask(asks)

    def _ask(self, asks: Sequence[bytes]) -> list[bytes]:
        self.asked += len(asks)
        more: list[bytes] = []
        for ask in self.carry(asks):
            answers = self.publisher.stream.hear("r", ask, now_ms=self.now_ms)
            for answer in self.carry(answers):
                more += self.reader.hear("p", answer, now_ms=self.now_ms)
        return more

    def run(self, span_ms: int) -> None:
        """Let that much time pass, in turns."""
        for _ in range(span_ms // 100):
            self.turn()

    def agrees(self) -> bool:
        """Return whether the reader holds what the publisher has."""
        return self.store.of("p") == self.publisher.all()
