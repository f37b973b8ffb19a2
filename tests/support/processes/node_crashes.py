"""Nodes that die at each stage of what they do, and what becomes of the responses they were making.

All of them at once: one node for each stage, in one cluster or each for itself, over one store; and two that live on and
are asked. As a program it prints how long it takes until there is an end:

    python -m support.processes.node_crashes [--store postgres|valkey] [--alone] [--rounds 3]
"""

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.peers.pending_writes import LATE_S
from smg_storage.open import open_store
from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.records import Access, PageAsk, StoredResponse
from smg_storage.url import parse_store_url
from support.answers.responses import checked
from support.history.crashing_store import Fate
from support.http.stream_client import WAIT_S, Heard, get, hear
from support.processes.forked_nodes import Nursery, Raised, all_up, nursery
from support.processes.node import RunningNode
from support.processes.shared_store_nodes import SharedStore, postgres, valkey
from support.processes.simulated_engines import running_simulated

MODEL: Final = "parrot"
_LOOK_S: Final = 0.05
_NUMBERS: Final = itertools.count(1)
SAYS: Final = (
    "Here is what I found out about it so far, and it is more than anybody would have thought. "
)

STAGES: Final[Mapping[str, Fate]] = {
    "before the row": Fate("store_response", 1, "before"),
    "after the row": Fate("store_response", 1, "after"),
    "before the first append": Fate("append_events", 1, "before"),
    "after the first append": Fate("append_events", 1, "after"),
    "between two appends": Fate("append_events", 2, "before"),
    "within an append": Fate("append_events", 3, "within"),
    "after an append": Fate("append_events", 4, "after"),
    "before the commit": Fate("commit_turn", 1, "before"),
    "within the commit": Fate("commit_turn", 1, "within"),
    "after the commit": Fate("commit_turn", 1, "after"),
}
"""Of a response in the background, while somebody follows it."""
RESUMABLE: Final[Mapping[str, Fate]] = {
    "resumable, between two appends": Fate("append_events", 2, "before"),
}
"""Of a stream that would go on without its client: he may have heard more than was kept."""
FOREGROUND: Final[Mapping[str, Fate]] = {
    "foreground, before the commit": Fate("commit_turn", 1, "before"),
    "foreground, within the commit": Fate("commit_turn", 1, "within"),
    "foreground, after the commit": Fate("commit_turn", 1, "after"),
}


def question(stage: str, **more: Any) -> dict[str, Any]:
    """Return what is asked of a node that dies at that stage."""
    return {
        "model": MODEL,
        "input": "What do you know?",
        "stream": True,
        "safety_identifier": stage,
        "max_output_tokens": 400,
        **more,
    }


@dataclass
class Scene:
    """Two nodes that live on, and what raises those that do not."""

    store: str
    nursery: Nursery
    flags: Sequence[str]
    survivors: Sequence[RunningNode]
    joins: Sequence[str]
    lease_s: float
    _threads: ThreadPoolExecutor

    def doomed(self, fate: Fate, *flags: str, name: str = "") -> Raised:
        """Begin a node with this fate; one that had this name before leaves its data to it."""
        given = [*self.flags, *mesh_flags(self.joins), *flags]
        return self.nursery.raise_node(
            name or f"doomed-{next(_NUMBERS)}", *given, fate=fate, lease_s=self.lease_s
        )

    def case(self, stage: str, node: RunningNode, **more: Any) -> "Case":
        """Ask a node for something that it does not survive; return what is heard of it, as it is heard."""
        case = Case(stage, node, self.survivors, lambda: kept_for(self.flags, stage))
        case.begin(self._threads, question(stage, **more))
        return case


@dataclass
class Case:
    """One response whose node dies: what its client heard, and one who followed it elsewhere."""

    stage: str
    node: RunningNode
    survivors: Sequence[RunningNode]
    look: Callable[[], Sequence[StoredResponse]]
    client: Heard = field(default_factory=Heard)
    follower: Heard = field(default_factory=Heard)
    kept: Sequence[StoredResponse] = ()
    """What is in the store of it, when it is over."""
    ended_s: float = 0.0
    """How long after its node died it had an end, for those who live."""
    _over: threading.Event = field(default_factory=threading.Event)
    _failure: BaseException | None = None

    def begin(self, threads: ThreadPoolExecutor, body: Any) -> None:
        """Ask."""
        threads.submit(self._all, threads, body)

    @property
    def id(self) -> str:
        """The id of the response; "" if there is none."""
        return self.named(self.client) or (self.kept[0].id if self.kept else "")

    @staticmethod
    def named(heard: Heard) -> str:
        """Return the id of the response that a stream tells; "" if it told nothing."""
        return str(json.loads(heard.told[0].data)["response"]["id"]) if heard.told else ""

    @property
    def died(self) -> bool:
        """Whether its node is dead."""
        return self.node.process.ended() is not None

    def result(self) -> "Case":
        """Return it when there is nothing more to wait for."""
        assert self._over.wait(WAIT_S), f"{self.stage}: no end within {WAIT_S:.0f} s"
        if self._failure is not None:
            raise self._failure
        return self

    def _all(self, threads: ThreadPoolExecutor, body: Any) -> None:
        try:
            path = "/v1/responses"
            asked = threads.submit(hear, self.node, "POST", path, body, self.client)
            while not asked.done() and not self.client.told:
                time.sleep(0.002)
            if self.client.told and body.get("background"):
                self._follow()
            asked.result()
            self.kept = self.look()
            if self.kept:
                self._await_end()
                self.kept = self.look()
            if self.kept and not self.follower.told:
                self._follow()
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self._over.set()

    def _follow(self) -> None:
        path = f"/v1/responses/{self.id}?stream=true"
        hear(self.survivors[0], "GET", path, heard=self.follower)

    def _await_end(self) -> None:
        while self.row()["status"] in ("queued", "in_progress"):
            assert time.monotonic() < self.client.over_s + WAIT_S, f"{self.stage}: it has no end"
            time.sleep(_LOOK_S)
        self.ended_s = max(time.monotonic() - self.client.over_s, 0.0)

    def row(self, survivor: int = 0) -> dict[str, Any]:
        """Return the object as a node that lives shows it."""
        status, shown = get(self.survivors[survivor], f"/v1/responses/{self.id}")
        assert status == 200, (self.stage, status, shown)
        found: dict[str, Any] = shown
        return found

    def check(self) -> str:
        """Check everything that must hold of it now; return its status."""
        assert len(self.kept) == 1, f"{self.stage}: it is there {len(self.kept)} times"
        shown = self.row()
        assert shown == self.row(1), self.stage
        assert json.loads(self.kept[0].response) == shown, self.stage
        status = str(shown["status"])
        assert status in ("completed", "failed"), self.stage
        if status == "failed":
            assert shown["error"]["code"] == "server_error"
            assert "died" in shown["error"]["message"]
        told = self.follower.told
        assert self.follower.done, f"{self.stage}: who followed it was left without an end"
        assert self.died, f"{self.stage}: its node lives"
        # No number twice, none missing, and all of it what the official client can follow.
        assert checked(told).status == status, self.stage
        assert json.loads(told[-1].data)["response"] == shown, self.stage
        # What somebody has heard is what everybody hears.
        heard = self.client.told
        if shown["background"]:
            assert heard == told[: len(heard)], self.stage
        if self.kept[0].background:
            self._check_replays(told)
        return status

    def _check_replays(self, told: Sequence[NumberedEvent]) -> None:
        path = f"/v1/responses/{self.id}?stream=true"
        last = len(told) - 1
        places = {
            0,
            len(self.client.told) // 2,
            len(self.client.told) - 1,
            last - 1,
            last,
            last + 7,
        }
        for after in sorted(place for place in places if place >= 0):
            for node in self.survivors:
                again = hear(node, "GET", f"{path}&starting_after={after}")
                assert (again.status, again.done) == (200, True), (self.stage, after)
                assert again.told == told[after + 1 :], (self.stage, after)
        assert hear(self.survivors[1], "GET", path).told == told, self.stage


def kept_for(flags: Sequence[str], identifier: str) -> Sequence[StoredResponse]:
    """Return what a store keeps for a person, as it is."""

    async def look() -> Sequence[StoredResponse]:
        given = dict(zip(flags[::2], flags[1::2], strict=False))
        owner = given.get("--storage.owner", "")
        options = StoreOptions(schema=SchemaNames(owner=owner) if owner else SchemaNames())
        store = open_store(
            parse_store_url(given["--store"]),
            options=options,
            now_us=lambda: time.time_ns() // 1_000,
        )
        await store.start()
        try:
            page = PageAsk(limit=9)
            found = await store.list_identifier_responses(Access(), identifier, page)
            return found.responses
        finally:
            await store.close()

    return asyncio.run(look())


def mesh_flags(joins: Sequence[str]) -> list[str]:
    """Return the flags of a member that joins through these; none at all for a node alone."""
    if not joins:
        return []
    join = [word for seed in joins for word in ("--join", seed)]
    return [*_first_flags(), *join]


def _first_flags() -> list[str]:
    return ["--insecure-mesh", "--mesh", "127.0.0.1:0", "--mesh.profile", "lan"]


@contextmanager
def sqlite(folder: Path) -> Iterator[SharedStore]:
    """Name a file that one node makes, in its own data folder."""
    yield SharedStore(("--store", "sqlite:///history.db"), lambda: 0)


STORES: Final[Mapping[str, Callable[[Path], AbstractContextManager[SharedStore]]]] = {
    "postgres": postgres,
    "valkey": valkey,
    "sqlite": sqlite,
}


@dataclass(frozen=True, slots=True)
class Stock:
    """What all scenes may share: an engine, and a nursery for their nodes."""

    folder: Path
    engine: str
    nursery: Nursery


@contextmanager
def stocked(folder: Path) -> Iterator[Stock]:
    """Run an engine and a nursery."""
    scratch = folder / "engine"
    scratch.mkdir(parents=True)
    script = folder / "says.txt"
    script.write_text(SAYS)
    words = ("--script", str(script), "--model", MODEL, "--itl-ms", "15", "--ttft-ms", "5")
    with running_simulated(scratch, *words) as engine, nursery(folder / "nodes") as raised:
        yield Stock(folder, f"grpc://{engine.address}", raised)


@contextmanager
def scene(
    stock: Stock, store: str, *, meshed: bool, lease_s: float = 0, living: int = 2
) -> Iterator[Scene]:
    """Run a store and nodes that live on."""
    scratch = stock.folder / f"store-{next(_NUMBERS)}"
    scratch.mkdir()
    with STORES[store](scratch) as shared, ThreadPoolExecutor(64) as threads:
        flags = [*shared.flags, "--worker", stock.engine, "--no-telemetry.access-log"]
        nodes, joins = list[Raised](), list[str]()
        try:
            for number in range(living):
                own = (mesh_flags(joins) or _first_flags()) if meshed else []
                name = f"{scratch.name}-{number}"
                nodes.append(stock.nursery.raise_node(name, *flags, *own))
                if meshed and not joins:
                    joins.append(nodes[0].mesh())
            yield Scene(store, stock.nursery, flags, all_up(nodes), joins, lease_s, threads)
        finally:
            stock.nursery.end_all()


# ── In figures ───────────────────────────────────────────────────────────────


def all_die(scene: Scene, fates: Mapping[str, Fate]) -> Mapping[str, Case]:
    """Let a node die at each of these stages, all at the same time; return what became of what they made."""
    grace = ("--responses.resume-grace-s", "30")
    raised = {
        name: scene.doomed(fate, *(grace if name in RESUMABLE else ()))
        for name, fate in fates.items()
    }
    nodes = {name: one.up() for name, one in raised.items()}
    # Of the time before they began those who live know nothing, and what is from then they would not deny.
    time.sleep(LATE_S)
    cases = {
        name: scene.case(name, node, background=name in STAGES) for name, node in nodes.items()
    }
    return {name: case.result() for name, case in cases.items()}


def figures(cases: Mapping[str, Case]) -> str:
    """Return, for each stage, how long after its node died a response had an end."""
    return "".join(
        f"{name:32} {case.ended_s:6.2f} s  {case.kept[0].status.value if case.kept else '-':10}"
        f" {len(case.client.told):3} events heard\n"
        for name, case in cases.items()
    )


def main() -> None:
    """Let nodes die at every stage, again and again, and print how long it took each time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=("postgres", "valkey"), default="postgres")
    parser.add_argument(
        "--alone", action="store_true", help="no mesh: only leases tell who is dead"
    )
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    fates = {**STAGES, **RESUMABLE} if asked.alone else {**STAGES, **FOREGROUND, **RESUMABLE}
    for number in range(asked.rounds):
        with (
            tempfile.TemporaryDirectory(prefix="smg-dying-") as folder,
            stocked(Path(folder)) as stock,
            scene(stock, asked.store, meshed=not asked.alone) as one,
        ):
            cases = all_die(one, fates)
            for name, case in cases.items():
                if case.kept and name not in FOREGROUND:
                    case.check()
            sys.stdout.write(
                f"round {number + 1}, {asked.store}, {'alone' if asked.alone else 'mesh'}\n"
            )
            sys.stdout.write(figures(cases))


if __name__ == "__main__":
    main()
