"""Answers whose tools run while their nodes are killed: a model that makes two calls, and what may be said of them.

Each answer has a name, which its model puts into the arguments of its calls; the server of tools counts by it what has
really begun, whatever anybody says.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.served.served_events import INTERRUPTED
from support.answers.chat_chunks import DONE, call, calls, chunk, used
from support.answers.responses import checked
from support.engines.chat_server import MODEL, ChatServer, running_chat_server
from support.http.stream_client import WAIT_S, Heard, ask, get, hear
from support.mcp.counting_process import counting_server, counts_of
from support.processes.forked_nodes import Nursery, nursery
from support.processes.node import RunningNode
from support.processes.node_crashes import Scene, Stock, mesh_flags, scene

CALLS: Final = 2
SLOW_S: Final = 0.3
"""So long a tool takes."""
LIFE_S: Final = 1.3
"""So long an answer takes, about: with a killing at any moment of that none of its stages is left out."""
_PAUSE_S: Final = 0.03
KINDS: Final = ("background", "background", "background", "resumable", "resumable", "unstored")
LABELS: Final = {"once": 1, "twice": 2}
"""Servers, and how often a call of theirs may run."""
_LOOK_S: Final = 0.05
_CALLED: Final = ("failed", "completed")
_TAKEN: Final = (200, 0)
"""Status of a request that was taken, or whose node died before it said so."""


@dataclass
class CallingModel(ChatServer):
    """A model that calls the tool `slow`, twice, and then says something."""

    def answer(self, body: dict[str, Any]) -> Iterator[bytes]:
        """Yield what is streamed, in pieces with time between them."""
        messages = body["messages"]
        name = next(str(one["content"]) for one in messages if one["role"] == "user")
        turn = sum(one["role"] == "tool" for one in messages)
        functions = [tool["function"]["name"] for tool in body.get("tools", ())]
        slow = next(one for one in functions if one.endswith("slow"))
        yield chunk(role="assistant", content="")
        if turn >= CALLS:
            yield chunk(content="So that is that.")
        else:
            text = json.dumps({"seconds": SLOW_S, "mark": f"{name}/{turn}"})
            yield calls(call(0, name=slow, call_id=f"call_{turn}"))
            for at in range(0, len(text), 16):
                time.sleep(_PAUSE_S)
                yield calls(call(0, text[at : at + 16]))
        time.sleep(_PAUSE_S)
        yield chunk("stop" if turn >= CALLS else "tool_calls")
        yield used(11, 7)
        yield DONE


@dataclass
class Told:
    """One answer: what its client heard of it, and what is known of it at last."""

    name: str
    kind: str
    label: str = "once"
    client: Heard = field(default_factory=Heard)
    id: str = ""
    shown: dict[str, Any] | None = None
    story: Sequence[NumberedEvent] = ()


@dataclass
class Tally:
    """Figures of many answers: how they ended, and what was said of their calls, beside how often these had begun."""

    ends: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __str__(self) -> str:
        said = ", ".join(f"{word} ×{runs}: {n}" for (word, runs), n in sorted(self.calls.items()))
        return f"{sum(self.ends.values())} answers {dict(self.ends)}; calls {said}"


@dataclass
class Killing:
    """Nodes over one store, two servers of tools, and those that are killed."""

    urls: Mapping[str, str]
    scene: Scene
    definitions: Path

    def round(self, seed: int, *, count: int) -> Tally:
        """Kill a node that makes so many answers, all at moments of their own; check what is said of each."""
        chance = random.Random(seed)
        grace = ("--responses.resume-grace-s", "30", "--mcp", str(self.definitions))
        doomed = self.scene.nursery.raise_node(
            f"{self.scene.store}-killed-{seed}",
            *self.scene.flags,
            *mesh_flags(self.scene.joins),
            *grace,
            lease_s=self.scene.lease_s,
        )
        node = doomed.up()
        told = [
            Told(f"{seed}-{at}", chance.choice(KINDS), "twice" if at % 3 == 2 else "once")
            for at in range(count)
        ]
        ages = sorted((chance.uniform(0, LIFE_S) for _ in told), reverse=True)
        with ThreadPoolExecutor(count) as threads:
            made: list[Future[None]] = []
            began_s = time.monotonic()
            for one, age_s in zip(told, ages, strict=True):
                time.sleep(max(0.0, began_s + LIFE_S - age_s - time.monotonic()))
                made.append(threads.submit(self._made, node, one))
            time.sleep(max(0.0, began_s + LIFE_S - time.monotonic()))
            doomed.kill()
            for asked in made:
                asked.result(WAIT_S)
            list(threads.map(self._ended, told))
        tally = Tally()
        marks = {label: counts_of(url)["marks"] for label, url in self.urls.items()}
        for one in told:
            _check(one, marks[one.label], LABELS[one.label], tally)
        return tally

    def _made(self, node: RunningNode, told: Told) -> None:
        body = {
            "model": MODEL,
            "input": told.name,
            "max_tool_calls": CALLS,
            "tools": [{"type": "mcp", "server_label": told.label, "require_approval": "never"}],
        }
        if told.kind == "background":
            status, shown = ask(node, "POST", "/v1/responses", {**body, "background": True})
            assert status in _TAKEN, (status, shown)
            told.id = str(shown["id"]) if shown else ""
            return
        asked = {**body, "stream": True, "store": told.kind != "unstored"}
        hear(node, "POST", "/v1/responses", asked, told.client)
        assert told.client.status in _TAKEN, told.client.status
        if told.client.told:
            told.id = str(json.loads(told.client.told[0].data)["response"]["id"])

    def _ended(self, told: Told) -> None:
        """Wait for the end of an answer, as one who lives tells it."""
        if not told.id or told.kind == "unstored":
            return
        survivor = self.scene.survivors[0]
        path = f"/v1/responses/{told.id}"
        until_s = time.monotonic() + WAIT_S
        while True:
            status, shown = get(survivor, path)
            if status == 200 and shown["status"] not in ("queued", "in_progress"):
                break
            assert time.monotonic() < until_s, (told.name, status, shown)
            time.sleep(_LOOK_S)
        told.shown = shown
        heard = hear(survivor, "GET", f"{path}?stream=true") if told.kind == "background" else None
        told.story = () if heard is None else heard.told


def _check(told: Told, marks: Mapping[str, int], runs_max: int, tally: Tally) -> None:
    """Check that no call ran more often than it may, and that what is said of each is true."""
    begun = [marks.get(f"{told.name}/{turn}", 0) for turn in range(CALLS)]
    assert max(begun) <= runs_max, (told.name, begun)
    shown = told.shown
    if shown is None:
        # Nothing is said of it; what its client heard broke off, or was whole.
        tally.ends["not there"] += 1
        _check_heard(told, begun)
        return
    tally.ends[str(shown["status"])] += 1
    items = [item for item in shown["output"] if item["type"] == "mcp_call"]
    assert len(items) <= CALLS, shown
    for turn, runs in enumerate(begun):
        word = _said_of(items[turn]) if turn < len(items) else "no item"
        tally.calls[word, runs] += 1
        least = {"completed": 1, "may have run": 0, "failed": 0}.get(word, 0)
        most = 0 if word in ("no item", "not whole") else runs_max
        assert least <= runs <= most, (told.name, word, runs, shown)
    if shown["status"] == "completed":
        assert [_said_of(item) for item in items] == ["completed"] * CALLS or runs_max > 1, shown
    if told.story:
        assert checked(told.story).status == shown["status"]
        assert json.loads(told.story[-1].data)["response"] == shown
    _check_heard(told, begun)


def _check_heard(told: Told, begun: Sequence[int]) -> None:
    """Check that each result that a client heard of is one of a call that has run."""
    done = [one for one in told.client.told if one.type == "response.mcp_call.completed"]
    assert len(done) <= sum(1 for runs in begun if runs), (told.name, begun)


def _said_of(item: Mapping[str, Any]) -> str:
    """Return in short what is said of a call."""
    status, error = str(item["status"]), item["error"]
    if status == "incomplete":
        assert error is None
        assert not _is_whole(item["arguments"]), item
        return "not whole"
    assert status in _CALLED, item
    assert _is_whole(item["arguments"]), item
    if status == "completed":
        return "completed"
    return "may have run" if error["message"] == INTERRUPTED else "failed"


def _is_whole(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


@contextmanager
def killing(folder: Path, store: str) -> Iterator[Killing]:
    """Run a store, a node that lives on, a model, and a server that counts."""
    with (
        running_chat_server(CallingModel()) as model,
        counting_server(folder / "once") as once,
        # Every other call runs, and its answer is lost on the way.
        counting_server(folder / "twice", "--fault", "reset:every=2") as twice,
        nursery(folder / "nodes") as raised,
        _scene(folder, model.url, raised, store) as one,
    ):
        definitions = folder / "servers.yaml"
        servers = {
            "once": {"url": once, "replay": "never"},
            "twice": {"url": twice, "replay": "always"},
        }
        definitions.write_text(json.dumps({"servers": servers}))
        yield Killing({"once": once, "twice": twice}, one, definitions)


@contextmanager
def _scene(folder: Path, engine: str, raised: Nursery, store: str) -> Iterator[Scene]:
    # A lease that nobody waits for: what ends before is ended because the mesh says who is dead.
    with scene(Stock(folder, engine, raised), store, meshed=True, lease_s=600, living=1) as one:
        yield one
