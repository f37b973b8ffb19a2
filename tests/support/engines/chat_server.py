"""A server of Chat Completions as a thread of the test: it answers by what it is asked, and remembers that."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from support.answers.chat_chunks import DONE, call, calls, chunk, used

MODEL = "talker"
WEATHER = '{"city":"Paris"}'
_PAUSE_S = 0.02
_WORDS = 400


def told_to(messages: list[dict[str, Any]]) -> str:
    """Return messages as one line: what the model was told, and by whom."""
    return " | ".join(
        f"{one['role']}: {one['content'] or ''}"
        + "".join(each["function"]["name"] for each in one.get("tool_calls", ()))
        for one in messages
    )


@dataclass
class ChatServer:
    """What it was asked, and how many of its answers nobody wanted to the end."""

    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    cut: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, body: dict[str, Any]) -> Iterator[bytes]:
        """Yield what is streamed; the last user's first word says what."""
        last = body["messages"][-1]
        word = str(last["content"]).partition(" ")[0]
        yield chunk(role="assistant", content="")
        if last["role"] == "tool":
            yield chunk(content=f"It is {last['content']}.")
        elif word == "weather":
            yield chunk(reasoning_content="I must look.")
            yield calls(call(0, name=_called(body), call_id="call_0"))
            for piece in (WEATHER[:5], WEATHER[5:]):
                yield calls(call(0, piece))
        elif word == "slow":
            for _ in range(_WORDS):
                time.sleep(_PAUSE_S)
                yield chunk(content="on ")
        elif word == "break":
            yield chunk(content="so")
            return
        else:
            for piece in told_to(body["messages"]).split(" "):
                yield chunk(content=piece + " ")
        yield chunk("tool_calls" if word == "weather" else "stop")
        yield used(11, 7, prompt_tokens_details={"cached_tokens": 4})
        yield DONE


def _called(body: dict[str, Any]) -> str:
    """Return the function that tells the weather, by the name that the server was told."""
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    return next((name for name in names if name.endswith("weather")), "weather")


@contextmanager
def running_chat_server(given: ChatServer | None = None) -> Iterator[ChatServer]:
    server = ChatServer() if given is None else given

    class Talk(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

        def do_GET(self) -> None:
            rows = {"object": "list", "data": [{"id": MODEL}]}
            known = self.path in ("/v1/models", "/health")
            self._whole(200 if known else 404, rows if known else {})

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            body = json.loads(raw)
            server.asked.append(body)
            if str(body["messages"][-1]["content"]).startswith("refuse"):
                self._whole(400, {"error": {"message": "it is not polite", "code": 400}})
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            try:
                for piece in server.answer(body):
                    self.wfile.write(piece)
            except OSError:
                server.cut += 1

        def _whole(self, status: int, value: object) -> None:
            said = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    with ThreadingHTTPServer(("127.0.0.1", 0), Talk) as http:
        http.daemon_threads = True
        server.port = http.server_address[1]
        thread = Thread(target=http.serve_forever, name="chat-server", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
