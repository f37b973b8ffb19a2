"""Nodes of one mesh before a model that calls a stateful server's `remember` with each question's word."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.answers.chat_chunks import DONE, call, calls, chunk, used
from support.engines.chat_server import MODEL, ChatServer, running_chat_server
from support.http.stream_client import ask
from support.mcp.replicas import Replica, stateful_servers
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import call as api_call

SERVER: Final = "notes"
TOOL: Final[Mapping[str, Any]] = {
    "type": "mcp",
    "server_label": SERVER,
    "require_approval": "never",
}


@dataclass
class RememberingModel(ChatServer):
    """A model that has the last question's word remembered, and says what comes of that."""

    def answer(self, body: dict[str, Any]) -> Iterator[bytes]:
        """Yield a call of the tool, or what the tool said."""
        last = body["messages"][-1]
        yield chunk(role="assistant", content="")
        if last["role"] == "tool":
            yield chunk(content=str(last["content"]))
        else:
            names = [tool["function"]["name"] for tool in body["tools"]]
            name = next(one for one in names if one.endswith("remember"))
            arguments = json.dumps({"word": last["content"]})
            count = len(body["messages"])
            yield calls(call(0, arguments, name=name, call_id=f"call_{count}"))
        yield chunk("stop" if last["role"] == "tool" else "tool_calls")
        yield used(11, 7)
        yield DONE


@dataclass
class Remembering:
    """The nodes, by name, and the servers."""

    nodes: Mapping[str, MeshNode]
    replicas: Sequence[Replica]

    def define(self, url: str, **fields: Any) -> None:
        """Define the server on all nodes."""
        body = {"url": url, "protocol": "2025-11-25", **fields}
        first, *_ = self.nodes.values()
        made = api_call(first, "PUT", f"/v1/mcp/servers/{SERVER}", body, {"if-match": "*"})
        assert made.status == 200, made
        for node in self.nodes.values():
            node.awaits("told of the server", lambda node=node: _knows(node))  # type: ignore[misc]  # bound now

    def turn(self, name: str, word: str, **body: Any) -> dict[str, Any]:
        """Ask a node, which has the word remembered; return the response."""
        asked = {"model": MODEL, "input": word, "tools": [TOOL], **body}
        status, response = ask(self.nodes[name].node, "POST", "/v1/responses", asked)
        assert (status, response["status"]) == (200, "completed"), response
        told: dict[str, Any] = response
        return told

    def kill(self, name: str) -> None:
        """Kill a node, and wait until the others know."""
        self.nodes[name].process.kill()
        for other, node in self.nodes.items():
            if other != name:
                node.awaits_states(**{name: "dead"})


def _knows(node: MeshNode) -> bool:
    return api_call(node, "GET", f"/v1/mcp/servers/{SERVER}").status == 200


def said(response: Mapping[str, Any]) -> str:
    """Return the text of a response."""
    parts = [item["content"] for item in response["output"] if item["type"] == "message"]
    return "".join(part["text"] for part in parts[-1])


@contextmanager
def remembering(
    folder: Path, *names: str, flags: Sequence[str] = (), servers: int = 1
) -> Iterator[Remembering]:
    """Run the model, the servers and the nodes."""
    with ExitStack() as stack:
        model = stack.enter_context(running_chat_server(RememberingModel()))
        replicas = stack.enter_context(stateful_servers(folder / "servers", servers))
        key, joins = make_key(folder), list[str]()
        nodes: dict[str, MeshNode] = {}
        for name in names:
            own = [*flags_of(name, key=key, join=joins), "--worker", model.url, *flags]
            nodes[name] = stack.enter_context(mesh_node(folder / name, own))
            joins = joins or [nodes[name].mesh]
        for node in nodes.values():
            node.awaits_states(**dict.fromkeys(names, "alive"))
            node.awaits_ready()
            node.awaits("with the model", lambda node=node: _has_model(node))  # type: ignore[misc]  # bound now
        yield Remembering(nodes, replicas)


def _has_model(node: MeshNode) -> bool:
    return any(one["id"] == MODEL for one in node.get("/v1/models")["data"])
