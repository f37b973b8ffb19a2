"""Clients that drop what they do not know: tool loops whose turns go back with nothing but texts and calls.

Such a client has parsed arguments, and writes them anew.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.error import HTTPError
from urllib.request import Request, urlopen

WISH: Final = "weather city=Paris rounds=3"
ROUNDS_MAX: Final = 6
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


@dataclass
class RefusedError(Exception):
    """A node refused a turn of a loop."""

    status: int
    body: str


class Client(Protocol):
    """A loop of one client. `text` is the last answer's, `rounds` how many called."""

    text: str
    rounds: int

    def ask(self, url: str, model: str) -> bool:
        """Ask a node for the next answer; whether it called. RefusedError."""
        ...


class ChatClient:
    """A client of Chat Completions. `key` is its API key."""

    def __init__(self, *, key: str = "", stream: bool = False) -> None:
        self.text = ""
        self.rounds = 0
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": WISH}]
        self._key = key
        self._stream = stream

    def ask(self, url: str, model: str) -> bool:
        """Ask for the next answer, and answer its calls."""
        function = {"name": "weather", "parameters": _PARAMETERS}
        body = {
            "model": model,
            "messages": self.messages,
            "tools": [{"type": "function", "function": function}],
            "reasoning_effort": "medium",
            "max_completion_tokens": 4_000,
            "stream": self._stream,
        }
        raw = post(f"{url}/v1/chat/completions", body, self._key)
        message = _joined(raw) if self._stream else json.loads(raw)["choices"][0]["message"]
        self.text = message.get("content") or ""
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": _anew(call["function"]["arguments"]),
                },
            }
            for call in message.get("tool_calls") or ()
        ]
        if not calls:
            return False
        self.rounds += 1
        self.messages.append({"role": "assistant", "content": self.text, "tool_calls": calls})
        self.messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls
        ]
        return True


class MessagesClient:
    """A client of Messages."""

    def __init__(self, *, key: str = "") -> None:
        self.text = ""
        self.rounds = 0
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": WISH}]
        self._key = key

    def ask(self, url: str, model: str) -> bool:
        """Ask for the next answer, and answer its calls."""
        body = {
            "model": model,
            "max_tokens": 4_000,
            "thinking": {"type": "adaptive"},
            "messages": self.messages,
            "tools": [{"name": "weather", "input_schema": _PARAMETERS}],
        }
        content = json.loads(post(f"{url}/v1/messages", body, self._key))["content"]
        names = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
        kept = [
            {name: block[name] for name in names[block["type"]]}
            for block in content
            if block["type"] in names
        ]
        self.text = "".join(block["text"] for block in kept if block["type"] == "text")
        calls = [block for block in kept if block["type"] == "tool_use"]
        if not calls:
            return False
        self.rounds += 1
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"} for call in calls
        ]
        self.messages += [
            {"role": "assistant", "content": kept},
            {"role": "user", "content": results},
        ]
        return True


def loop(client: Client, urls: Iterable[str], model: str) -> None:
    """Ask these nodes one after the other until the model ends."""
    for _, url in zip(range(ROUNDS_MAX), urls, strict=False):
        if not client.ask(url, model):
            return
    raise AssertionError("models do not end")


def post(url: str, body: Any, key: str = "") -> bytes:
    """Return the body of a good answer; RefusedError for any other."""
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    try:
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
            said: bytes = answer.read()
            return said
    except HTTPError as error:
        with error:
            raise RefusedError(error.code, error.read().decode(errors="replace")) from None


def _joined(stream: bytes) -> dict[str, Any]:
    """Return the message of a stream of chunks."""
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    for line in stream.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                calls = message["tool_calls"]
                if call["index"] == len(calls):
                    calls.append({"id": call["id"], "function": dict(call["function"])})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return message


def _anew(arguments: str) -> str:
    return json.dumps(json.loads(arguments), indent=1, sort_keys=True)
