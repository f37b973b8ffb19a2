"""HTTP call: one generation asked for over HTTP, its tokens turned into text and event frames."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.rpc_call import Call, End
from smg_chaos.engine.servers.http_objects import Words, frame
from smg_chaos.engine.simulator.engine import Engine
from smg_chaos.engine.simulator.generation import Generation
from smg_node.core.errors import SmgError
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.grpc.stream_reader import StreamReader

_REPLACEMENT: Final = "�"
_FINISHES: Final[Mapping[str, str]] = {"stop_sequence": "stop"}
_DONE: Final = b"data: [DONE]\n\n"


class MistakeError(Exception):
    """A bad request, answered by a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _Choice:
    """One answer: its ids, and how much of its text was sent."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.said = ""
        self.finish: str | None = None


class HttpGeneration:
    """One request. `begin`, then `frames` to the end; `streamed` is the form its client wants."""

    def __init__(self, words: Words, body: Mapping[str, Any], *, chat: bool, name: str) -> None:
        self.streamed = body.get("stream") is True
        self.end: End | None = None
        self._words = words
        self._body = body
        self._chat = chat
        self._name = name
        self._call: Call | None = None
        self._bell = asyncio.Event()
        self._asked = self._read(body, chat=chat)
        self._choices = [_Choice() for _ in range(self._asked.n)]
        self._prompt_tokens = len(self._asked.ids)
        self._cached_tokens = 0

    def _read(self, body: Mapping[str, Any], *, chat: bool) -> Asked:
        count, most = body.get("n", 1), body.get("max_completion_tokens", body.get("max_tokens"))
        if not isinstance(count, int) or not 1 <= count <= 16:
            raise MistakeError(400, "n must be in 1..16")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise MistakeError(400, "max_tokens must be at least 1")
        stop = body.get("stop") or ()
        return Asked(
            request_id=self._name,
            ids=self._words.prompt_ids(body, chat=chat),
            stream=True,
            max_tokens=most if chat or most is not None else 16,
            n=count,
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            ignore_eos=body.get("ignore_eos") is True,
            min_tokens=_number(body, "min_tokens") or 0,
            room=_number(body, "bootstrap_room"),
            room_host=str(body.get("bootstrap_host") or ""),
            room_port=_number(body, "bootstrap_port") or 0,
            transfer=_transfer(body),
            rank=_number(body, "data_parallel_rank"),
        )

    def begin(self, engine: Engine, now_s: float) -> None:
        """Submit the request to the engine."""
        self._call = engine.submit(self._asked, now_s)
        self._call.bell = lambda call: self._bell.set()

    def cancel(self, now_s: float) -> None:
        """Free whatever is still held."""
        if self._call is not None:
            self._call.cancel(now_s)

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the frames of a stream but the last ones; then `end` says how the call ended."""
        call, wire = self._call, VllmWire()
        assert call is not None, "it has begun"
        reader = StreamReader(self._asked.n, stop_ids=(), logprobs=None, prompt_logprobs=None)
        while True:
            messages = call.take()
            out = b""
            for data in messages:
                message = wire.read(data)
                chunk = None
                try:
                    chunk = reader.feed(message) if message is not None else None
                except SmgError as error:
                    raise MistakeError(500, error.message) from error
                if chunk is None:
                    continue
                self._cached_tokens = max(self._cached_tokens, chunk.cached_tokens)
                choice = self._choices[chunk.choice]
                choice.ids += chunk.ids
                choice.finish = _FINISHES.get(chunk.finish or "", chunk.finish) or choice.finish
                out += self._said(chunk.choice, choice)
            if out:
                yield out
            if call.end is not None and not call.waits:
                self.end = call.end
                return
            if not messages:
                await self._bell.wait()
                self._bell.clear()

    def _said(self, at: int, choice: _Choice) -> bytes:
        text = self._words.text(choice.ids)
        if choice.finish is None:
            text = text.rstrip(_REPLACEMENT)
        new, choice.said = text[len(choice.said) :], text
        if not new and choice.finish is None:
            return b""
        return frame(self._words.piece(self._name, at, new, choice.finish, chat=self._chat))

    def last_frames(self) -> bytes:
        """Return the frames that end a stream."""
        options = self._body.get("stream_options")
        wanted = isinstance(options, dict) and options.get("include_usage") is True
        if not wanted:
            return _DONE
        return frame(self._words.usage_piece(self._name, self._usage(), chat=self._chat)) + _DONE

    def answer(self) -> Mapping[str, Any]:
        """Return the answer as one object."""
        texts = [(choice.said, choice.finish) for choice in self._choices]
        answer = self._words.whole(self._name, texts, self._usage(), chat=self._chat)
        call = self._call
        told = call.transfer if isinstance(call, Generation) else ""
        return {**answer, "kv_transfer_params": json.loads(told)} if told else answer

    def _usage(self) -> Mapping[str, Any]:
        made = sum(len(choice.ids) for choice in self._choices)
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": made,
            "total_tokens": self._prompt_tokens + made,
            "prompt_tokens_details": {"cached_tokens": self._cached_tokens},
        }


def _number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise MistakeError(400, f"{name} must be a whole number")
    return value


def _transfer(body: Mapping[str, Any]) -> str:
    value = body.get("kv_transfer_params")
    if value is None:
        return ""
    if not isinstance(value, dict):
        raise MistakeError(400, "kv_transfer_params must be an object")
    return json.dumps(value)
