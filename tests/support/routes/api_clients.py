"""Clients of every API in a line each: one short request to a node, and the text of its answer."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from support.processes.node import RunningNode


class Said(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(node: RunningNode, path: str, body: Any, method: str = "POST") -> Said:
    """Return what a node answers, whatever its status."""
    where = urlsplit(node.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"content-type": "application/json"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Said(answer.status, headers, answer.read().decode())
    finally:
        connection.close()


def chat(node: RunningNode, model: str, *, stream: bool, text: str = "words=5") -> tuple[Said, str]:
    messages = [{"role": "user", "content": text}]
    body = {"model": model, "messages": messages, "stream": stream}
    said = ask(node, "/v1/chat/completions", body)
    if not stream or said.status != 200:
        return said, "" if said.status != 200 else said.json["choices"][0]["message"]["content"]
    chunks = [event for event in events_of(said) if event != "[DONE]"]
    assert {chunk["model"] for chunk in chunks if "model" in chunk} == {model}
    return said, "".join(
        choice["delta"].get("content") or "" for one in chunks for choice in one.get("choices", ())
    )


def messages(node: RunningNode, model: str, *, stream: bool) -> tuple[Said, str]:
    said_so = [{"role": "user", "content": "words=5"}]
    body = {"model": model, "max_tokens": 200, "messages": said_so, "stream": stream}
    said = ask(node, "/v1/messages", body)
    if not stream or said.status != 200:
        return said, "" if said.status != 200 else said.json["content"][0]["text"]
    events = events_of(said)
    assert events[0]["message"]["model"] == model
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    return said, "".join(delta.get("text", "") for delta in deltas)


def contents(node: RunningNode, model: str, *, stream: bool) -> tuple[Said, str]:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "words=5"}]}]}
    said = ask(node, f"/v1beta/models/{model}:{method}", body)
    if said.status != 200:
        return said, ""
    parts = events_of(said) if stream else [said.json]
    assert {part["modelVersion"] for part in parts} == {model}
    return said, "".join(
        piece.get("text", "")
        for part in parts
        for piece in part["candidates"][0]["content"]["parts"]
    )


def responses(node: RunningNode, model: str, *, stream: bool) -> tuple[Said, str]:
    said = ask(node, "/v1/responses", {"model": model, "input": "words=5", "stream": stream})
    if said.status != 200:
        return said, ""
    whole = (
        [one for one in events_of(said) if one != "[DONE]"][-1]["response"] if stream else said.json
    )
    assert whole["status"] == "completed"
    assert whole["model"] == model
    return said, "".join(
        part["text"]
        for item in whole["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


def interactions(node: RunningNode, model: str, *, stream: bool) -> tuple[Said, str]:
    said = ask(node, "/v1beta/interactions", {"model": model, "input": "words=5", "stream": stream})
    if said.status != 200 or stream:
        return said, said.body if said.status == 200 else ""
    assert said.json["model"] == model
    return said, said.json["steps"][-1]["content"][0]["text"]


def events_of(said: Said) -> list[Any]:
    lines = said.body.replace("\r\n", "\n").split("\n")
    data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    return [one if one == "[DONE]" else json.loads(one) for one in data]


APIS = {
    "chat": chat,
    "messages": messages,
    "contents": contents,
    "responses": responses,
    "interactions": interactions,
}
