"""Every string that a client can have stored, with a NUL in it: kept as it came, or refused at its path, by every store.

A NUL is the one character that a text of PostgreSQL cannot hold, in JSON it is an escape like any other.
"""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from support.answers.responses import SAMPLES
from support.processes.node import RunningNode, running_node
from support.processes.shared_store_nodes import postgres, valkey
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

Step = str | int
_KEPT: Final = "kept"

ITEMS: Final = {
    kind: {"type": kind, "id": f"msg_{number}", **sample}
    for number, (kind, sample) in enumerate(SAMPLES.items())
} | {
    "assistant": {
        "type": "message", "id": "msg_a", "role": "assistant", "status": "completed",
        "phase": "commentary", "content": [{"type": "output_text", "text": "ok"}],
    },
    "roles of others": {"type": "function_call_output", "call_id": "c", "output": "o", "role": "r"},
}  # fmt: skip
_FUNCTION: Final = '{"type":"function","name":"f","description":"d","parameters":{"title":"t"}}'
BODY: Final[dict[str, Any]] = {
    "model": "parrot",
    "instructions": "be brief",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "say it"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
        {"role": "assistant", "content": "well"},
        {"role": "user", "content": "again"},
    ],
    "max_output_tokens": 5,
    "safety_identifier": "person",
    "user": "me",
    "prompt_cache_key": "key",
    "prompt_cache_retention": "24h",
    "metadata": {"topic": "birds"},
    "tools": [
        json.loads(_FUNCTION),
        {"type": "custom", "name": "g", "description": "d"},
        {"type": "namespace", "name": "n", "description": "d", "tools": [json.loads(_FUNCTION)]},
        {"type": "mcp", "server_label": "s", "server_url": "https://tools.example"},
    ],
    "tool_choice": "none",
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "truncation": "disabled",
    "service_tier": "default",
    "include": ["reasoning.encrypted_content"],
}

_CHECKED: Final = {
    "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "assistant",
}  # fmt: skip
REFUSED_ITEMS: Final = {
    *(f"{kind}: type" for kind in ITEMS),
    *(f"{kind}: status" for kind in _CHECKED),
    *(f"message: content.{number}.type" for number in range(3)),
    "message: content.1.detail",
    "message: role",
    "assistant: role",
    "assistant: phase",
    "assistant: content.0.type",
    "reasoning: summary.0.type",
    "reasoning: content.0.type",
    "custom_tool_call_output: output.0.type",
}
REFUSED: Final = {
    "input.0.role", "input.0.content.0.type", "input.1.type", "input.2.type", "input.3.role",
    "input.4.role", "safety_identifier", "tools.0.type", "tools.0.name", "tools.1.name",
    "tools.2.type", "tools.2.tools.0.type", "tools.2.tools.0.name", "tool_choice",
    "text.format.type", "text.verbosity", "reasoning.effort", "reasoning.summary", "truncation",
    "service_tier", "include.0",
}  # fmt: skip
"""What is one of a few words, a name or an identifier; everything else is content."""
UNKNOWN: Final = {
    "model": (404, "model"),
    "input.1.call_id": (400, "input"),
    "input.2.call_id": (400, "input"),
}
"""What is a good value, and that of something else."""


def leaves(value: Any, *path: Step) -> Iterator[tuple[Step, ...]]:
    """Yield where the strings in a value are."""
    if type(value) is str:
        yield path
    elif type(value) in (dict, list):
        for step, inner in value.items() if type(value) is dict else enumerate(value):
            yield from leaves(inner, *path, step)


def spoilt(value: Any, path: tuple[Step, ...]) -> Any:
    """Return the value with a NUL in that string."""
    changed = deepcopy(value)
    place = changed
    for step in path[:-1]:
        place = place[step]
    text = place[path[-1]]
    place[path[-1]] = f"{text[:1]}\0{text[1:]}"
    return changed


def named(path: tuple[Step, ...]) -> str:
    return ".".join(map(str, path))


def json_path(*path: Step) -> str:
    return "".join(f"[{step}]" if type(step) is int else f".{step}" for step in path)[1:]


def refused_at(found: dict[str, tuple[str, Any]]) -> tuple[set[str], dict[str, Any]]:
    """Return what was refused with its own path, and all that was neither that nor kept."""
    own = {name for name, (path, became) in found.items() if became == (400, path)}
    others = {name: became for name, (_, became) in found.items() if became != _KEPT}
    return own, {name: became for name, became in others.items() if name not in own}


class Asker:
    """One connection to a node."""

    def __init__(self, node: RunningNode) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(node.url).netloc, timeout=60)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        packed = None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", **headers}
        self._connection.request(method, path, packed, sent)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def item(self, item: dict[str, Any]) -> Any:
        """Return what becomes of an item in a new conversation: `kept`, or the status and the path of a refusal."""
        status, made = self.ask("POST", "/v1/conversations", {"items": [item]})
        if status != 200:
            return status, made["error"]["param"]
        status, page = self.ask("GET", f"/v1/conversations/{made['id']}/items")
        if status != 200:
            return status, page["error"]["message"]
        (read,) = page["data"]
        same = {key: read.get(key) for key in item if key != "id"}
        differing = [key for key, value in same.items() if not contains(value, item[key])]
        return differing or _KEPT

    def response(self, body: dict[str, Any]) -> Any:
        """Return what becomes of a response: `kept`, or the status and the path of a refusal."""
        status, made = self.ask("POST", "/v1/responses", body)
        if status != 200:
            return status, made["error"]["param"]
        again = self.ask("GET", f"/v1/responses/{made['id']}")
        given = self.ask("GET", f"/v1/responses/{made['id']}/input_items?order=asc")
        if again != (200, made) or given[0] != 200:
            return again, given
        shown = {key: made[key] for key in body if key in made and key != "tools"}
        differing = [key for key, value in shown.items() if not contains(value, body[key])]
        if "conversation" in body:
            differing = [key for key in differing if key != "conversation"]
        if not contains(given[1]["data"], expanded(body["input"])):
            differing.append("input")
        return differing or _KEPT


def expanded(items: list[Any]) -> list[Any]:
    """Return items without contents that are spelled in short, which are written out when they are stored."""
    return [
        {key: value for key, value in item.items() if key != "content" or type(value) is list}
        for item in items
    ]


def contains(whole: Any, part: Any) -> bool:
    """Whether everything that a client said is there; defaults may have been added."""
    if type(part) is dict and type(whole) is dict:
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if type(part) is list and type(whole) is list:
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@contextmanager
def node_on(store: str, folder: Path, worker: str) -> Iterator[RunningNode]:
    own = folder / store
    own.mkdir()
    if store in ("memory", "sqlite"):
        flags = ("--store", "memory:") if store == "memory" else ()
        with running_node(own, workers=[worker], flags=flags) as node:
            yield node
        return
    running = postgres if store == "postgresql" else valkey
    with running(own) as shared, running_node(own, workers=[worker], flags=shared.flags) as node:
        yield node


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgresql", "redis"])
def asker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    folder = tmp_path_factory.mktemp("nodes")
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "0.2", "--ttft-ms", "0.2")
    with (
        running_simulated(folder, *flags) as engine,
        node_on(request.param, folder, f"grpc://{engine.address}") as node,
    ):
        yield Asker(node)


def test_a_string_of_an_item_is_kept_or_refused_at_its_path(asker: Asker) -> None:
    found = {
        f"{kind}: {named(path)}": (json_path("items", 0, *path), asker.item(spoilt(item, path)))
        for kind, item in ITEMS.items()
        for path in leaves(item)
    }
    assert refused_at(found) == (REFUSED_ITEMS, {})
    assert len(found) > 100


@pytest.mark.parametrize("within", ["chain", "conversation"])
def test_a_string_of_a_request_is_kept_or_refused_at_its_path(asker: Asker, within: str) -> None:
    def became(body: dict[str, Any]) -> Any:
        if within == "conversation":
            status, made = asker.ask("POST", "/v1/conversations", {})
            assert status == 200
            body = {**body, "conversation": made["id"]}
        return asker.response(body)

    assert became(BODY) == _KEPT
    found = {named(path): (json_path(*path), became(spoilt(BODY, path))) for path in leaves(BODY)}
    assert refused_at(found) == (REFUSED, UNKNOWN)
    assert len(found) > 40


def test_metadata_may_have_a_nul_in_names_and_values(asker: Asker) -> None:
    metadata = {"a\0b": "c\0d"}
    status, made = asker.ask("POST", "/v1/conversations", {"metadata": metadata})
    assert (status, made["metadata"]) == (200, metadata)
    path = f"/v1/conversations/{made['id']}"
    changed = {"e\0": "\0"}
    assert asker.ask("POST", path, {"metadata": changed})[1]["metadata"] == changed
    assert asker.ask("GET", path)[1]["metadata"] == changed
    status, response = asker.ask("POST", "/v1/responses", {**BODY, "metadata": metadata})
    assert (status, response["metadata"]) == (200, metadata)


@pytest.mark.parametrize(
    ("item", "became"),
    [
        ({"type": "function_call_output", "call_id": "c", "output": "o", "role": "r" * 100}, _KEPT),
        ({"type": "function_call_output", "call_id": "c", "output": "o", "role": 5}, _KEPT),
        ({"type": "web_search_call", "status": "s" * 100}, _KEPT),
        ({"type": f"acme:{'n' * 59}"}, _KEPT),
        ({"type": f"acme:{'n' * 60}"}, (400, "items[0].type")),
    ],
)
def test_what_is_long_or_strange_beside_a_document_has_one_answer(
    asker: Asker, item: dict[str, Any], became: Any
) -> None:
    assert asker.item(item) == became


@pytest.mark.parametrize(
    "path",
    [
        "/v1/responses/resp_%00",
        "/v1/responses/resp_%00/input_items",
        "/v1/conversations/conv_%00",
        "/v1/conversations/conv_%00/items",
    ],
)
def test_an_id_with_a_nul_is_that_of_nothing(asker: Asker, path: str) -> None:
    assert asker.ask("GET", path)[0] == 404


def test_an_idempotency_key_has_no_nul(asker: Asker) -> None:
    body = {"model": "parrot", "input": "x", "max_output_tokens": 1}
    status, _ = asker.ask("POST", "/v1/responses", body, **{"idempotency-key": "a\0b"})
    assert status == 400
