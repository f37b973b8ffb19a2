"""Publishers and readers of hints on virtual time, over links that lose, repeat and reorder."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

from smg_mesh.crdt.hints.hint_messages import HintError
from smg_mesh.crdt.hints.hint_publisher import HintStream
from smg_mesh.crdt.hints.hint_reader import HintReader
from smg_mesh.sync.hint_sessions import HintSessions

Deliver = Callable[[Sequence[bytes]], Sequence[bytes]]


class DictStore:
    """Hints as sets, by owner and subject."""

    def __init__(self) -> None:
        self.hashes: dict[tuple[str, str], set[int]] = defaultdict(set)
        self.doubted: dict[tuple[str, str], set[int]] = {}
        self.mentioned: list[tuple[str, str, tuple[int, ...]]] = []

    def add(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        self.hashes[owner, subject].update(hashes)

    def remove(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        self.hashes[owner, subject].difference_update(hashes)

    def mention(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        self.mentioned.append((owner, subject, tuple(hashes)))

    def replace(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        self.hashes[owner, subject] = set(hashes)

    def drop(self, owner: str, subject: str) -> None:
        self.hashes.pop((owner, subject), None)

    def doubt(self, owner: str, subject: str) -> None:
        self.doubted[owner, subject] = self.hashes.pop((owner, subject), set())

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

    def clear(self, subject: str, *, perhaps: bool = False) -> None:
        self.hashes[subject].clear()
        self.stream.clear(subject, perhaps=perhaps)

    def all(self) -> dict[str, set[int]]:
        return {subject: found for subject, found in self.hashes.items() if found}


class HintLink:
    """One publisher `p`, one reader `r`, and the way between them."""

    def __init__(self, publisher: Publisher | None = None, *, seed: int = 0) -> None:
        self.now_ms = 1_000
        self.publisher = publisher or Publisher()
        self.store = DictStore()
        self.gone: set[str] = set()
        self.reader = HintReader(self.store, wanted=lambda _, subject: subject not in self.gone)
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


class HintNode:
    """A node that publishes and follows."""

    def __init__(self, name: str, boot: int = 1, *, bytes_per_s: int = 65_536) -> None:
        self.name = name
        self.boot = boot
        self.hashes: dict[str, set[int]] = defaultdict(set)
        self.store = DictStore()
        self.gone: set[str] = set()
        self.talk = HintSessions(
            self.store,
            contents=lambda subject: sorted(self.hashes[subject]),
            wanted=lambda _, subject: subject not in self.gone,
            bytes_per_s=bytes_per_s,
        )
        self.talk.begin(boot)

    def add(self, subject: str, *hashes: int) -> None:
        for block_hash in hashes:
            if block_hash not in self.hashes[subject]:
                self.hashes[subject].add(block_hash)
                self.talk.stream.add(subject, block_hash)

    def remove(self, subject: str, *hashes: int) -> None:
        for block_hash in hashes:
            if block_hash in self.hashes[subject]:
                self.hashes[subject].discard(block_hash)
                self.talk.stream.remove(subject, block_hash)

    def all(self) -> dict[str, set[int]]:
        return {subject: found for subject, found in self.hashes.items() if found}


class Talker(Protocol):
    """A node of a `HintWire`."""

    name: str
    boot: int

    @property
    def talk(self) -> HintSessions:
        """What it says and hears."""
        ...


T = TypeVar("T", bound=Talker)


class HintWire(Generic[T]):
    """Nodes that call each other on virtual time; calls fail as often as `loss` says, half of them answered."""

    def __init__(self, *nodes: T, seed: int = 0) -> None:
        self.now_ms = 1_000
        self.loss = 0.0
        self.cut: set[str] = set()
        self.calls: list[tuple[int, str, str, int]] = []
        """When, from, to, how many bytes."""
        self.nodes = {node.name: node for node in nodes}
        self._rng = Random(seed)
        self.meet()

    def meet(self) -> None:
        """Let all know who lives."""
        for node in self.nodes.values():
            node.talk.set_peers({o.name: o.boot for o in self.nodes.values() if o is not node})

    def turn(self, *, step_ms: int = 100) -> None:
        """Let some time pass, and everybody call whom it has something to say to."""
        self.now_ms += step_ms
        for node in list(self.nodes.values()):
            for name, letter in node.talk.due(self.now_ms, calls_max=8):
                self._call(node, name, letter)

    def _call(self, node: T, name: str, letter: bytes) -> None:
        following: bytes | None = letter
        while following is not None:
            self.calls.append((self.now_ms, node.name, name, len(following)))
            answer = self._answer(node, name, following)
            if answer is None:
                node.talk.failed(name, self.now_ms)
                return
            following = node.talk.answered(name, answer, self.now_ms)

    def _answer(self, node: T, name: str, letter: bytes) -> bytes | None:
        peer = self.nodes.get(name)
        if peer is None or {node.name, name} & self.cut or self._rng.random() < self.loss / 2:
            return None
        try:
            answer = peer.talk.hear(node.name, letter, self.now_ms)
        except HintError:
            return None
        return None if self._rng.random() < self.loss / 2 else answer

    def run(self, span_ms: int) -> None:
        """Let that much time pass, in turns."""
        for _ in range(span_ms // 100):
            self.turn()


class HintNet(HintWire[HintNode]):
    """Such nodes with nothing but hints."""

    def __init__(self, *names: str, seed: int = 0) -> None:
        super().__init__(*(HintNode(name) for name in names), seed=seed)

    def agree(self) -> bool:
        """Return whether everybody holds what everybody else has."""
        return all(
            node.store.of(other.name) == other.all()
            for node in self.nodes.values()
            for other in self.nodes.values()
            if other is not node
        )
