"""Fast presenter: renders the usual event batches of plain chats from precomputed frames.

A plain body (`GenerateRequest.alike`) has one choice, and its answer is nearly always one text.
Then the frames of all streams of a model differ in their ids, times, texts and numbers only. The
constant parts are made by letting `ChatPresenter` render an answer without those; at the first
batch of another shape it takes over for good, after it was given the events shown so far. That both
give the same bytes is tested over streams of all kinds, cut anywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec

from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling
from smg_node.dialects.chat.message import finish_reason
from smg_node.dialects.chat.presenter import ChatPresenter, is_bare
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.frames import DONE, USAGE, encode_json, json_text

_HEAD: Final = b'data: {"id":"chatcmpl-%b","object":"chat.completion.chunk","created":%d'
"""What a frame begins with: the only part of it that is this stream's."""


class _Words(msgspec.Struct, frozen=True, gc=False):
    """Constant parts of frames: of the frame with the role, before and behind a text, of an end,
    around usage.
    """

    role: bytes
    before: bytes
    behind: bytes
    finish: Mapping[str, bytes]
    usage: bytes
    """With places for the numbers; b"" where usage is not told."""


class PlainPresenter(ChatPresenter):
    """Renders one generation for a plain body with a plain view."""

    _logprobs = False
    _left = False
    """Whether all else is up to `ChatPresenter`."""

    # What was shown so far. Ids of answers are hex digits: they need no escapes.
    _begun: Begin | None = None
    _started: BlockStart | None = None
    """The block that is open."""
    _head = b""
    _words: _Words
    _around = b""
    """What stands before a text."""

    def __init__(self, reading: ParsedBody[ChatView]) -> None:
        self._request = reading.request
        self._view = reading.view

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; see `ChatPresenter`."""
        batch = _BATCHES.get(tuple(map(type, events)))
        if batch is None or self._left:
            return self._long_way(events)
        return batch(self, events)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        if self._left:
            return super().around()
        if self._started is None:
            return None
        return FrameTemplate(self._around, self._words.behind, json_text)

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        first = answer.choices[0]
        blocks, finish = first.blocks, first.finish
        begin, usage = answer.begin, answer.usage
        if len(blocks) != 1 or finish is None or not is_bare(blocks[0], usage):
            return super().answer(answer)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return _whole(begin.model, begin.fingerprint) % (
            begin.id.encode(),
            begin.created_s,
            encode_json(blocks[0].text),
            finish_reason(finish.reason, self._view).encode(),
            prompt,
            completion,
            prompt + completion,
            usage.cached_tokens,
            usage.reasoning_tokens,
        )

    # ── Batch by batch ───────────────────────────────────────────────────────

    def _first(self, events: Sequence[Any]) -> bytes:
        begin, start, delta = events
        if start.kind != "text" or not delta.text:
            return self._long_way(events)
        self._begun, self._started = begin, start
        self._words = words = _words_of(begin.model, begin.fingerprint, self._view.include_usage)
        self._head = head = _HEAD % (begin.id.encode(), begin.created_s)
        self._around = around = head + words.before
        return b"".join((head, words.role, around, json_text(delta.text), words.behind))

    def _more(self, events: Sequence[Any]) -> bytes:
        text = events[0].text
        return self._around + json_text(text) + self._words.behind if text else b""

    def _last(self, events: Sequence[Any]) -> bytes:
        if events[-2].opaque:
            return self._long_way(events[-2:])
        self._started = None
        return self._head + self._words.finish[events[-1].reason]

    def _more_and_last(self, events: Sequence[Any]) -> bytes:
        return self._more(events) + self._last(events)

    def _all(self, events: Sequence[Any]) -> bytes:
        first = self._first(events[:3])
        return first + (self.frames(events[3:]) if self._left else self._last(events))

    def _totals(self, events: Sequence[Any]) -> bytes:
        template = self._words.usage
        if not template:
            return DONE
        usage = events[0]
        if usage.cache_write_tokens:
            return self._long_way(events)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return self._head + template % (
            prompt,
            completion,
            prompt + completion,
            usage.cached_tokens,
            usage.reasoning_tokens,
        )

    def _long_way(self, events: Sequence[Event]) -> bytes:
        if not self._left:
            self._left = True
            begun, started = self._begun, self._started
            if begun is not None:
                # Its frames are out already.
                super().frames((begun,) if started is None else (begun, started))
        return super().frames(events)


# By all their types at once: what an answer begins with, goes on with and ends with.
_BATCHES: Final[Mapping[tuple[type, ...], Callable[[PlainPresenter, Sequence[Any]], bytes]]] = {
    (Begin, BlockStart, Delta): PlainPresenter._first,
    (Delta,): PlainPresenter._more,
    (BlockEnd, Finish): PlainPresenter._last,
    (Delta, BlockEnd, Finish): PlainPresenter._more_and_last,
    (Begin, BlockStart, Delta, BlockEnd, Finish): PlainPresenter._all,
    (Usage, End): PlainPresenter._totals,
}

_NOTHING: Final = Usage(0, 0, 0)


@lru_cache(maxsize=256)
def _words_of(model: str, fingerprint: str | None, include_usage: bool) -> _Words:
    """Return the constant parts of the frames of all plain streams of a model, as `ChatPresenter`
    renders them.
    """
    request = GenerateRequest(model, (ChatPrompt(()),), Sampling(), stream=True)
    general = ChatPresenter(ParsedBody(request, ChatView(include_usage=include_usage)))
    head = _HEAD % (b"", 0)

    def frame(event: Event) -> bytes:
        shown = general.frames((event,))
        assert not shown or shown.startswith(head)
        return shown[len(head) :]

    role = frame(Begin("", model, 0, 0, fingerprint))
    general.frames((BlockStart(0, 0, "text"),))
    around = general.around()
    assert around is not None, "a plain text has frames that differ in nothing else"
    assert around.head.startswith(head)
    finish = {reason: frame(Finish(0, reason)) for reason in get_args(FinishReason)}
    before, _, behind = frame(_NOTHING).rpartition(USAGE % (0, 0, 0, 0, 0))
    usage = _escaped(before) + USAGE + behind + DONE if before else b""
    return _Words(role, around.head[len(head) :], around.tail, finish, usage)


@lru_cache(maxsize=256)
def _whole(model: str, fingerprint: str | None) -> bytes:
    """Return a plain answer of a model, with places for what differs."""
    return (
        b'{"id":"chatcmpl-%b","object":"chat.completion","created":%d,"model":'
        + _escaped(encode_json(model))
        + b',"choices":[{"index":0,"message":{"role":"assistant","content":%b,"refusal":null},'
        b'"logprobs":null,"finish_reason":"%b"}],"usage":'
        + USAGE
        + b',"system_fingerprint":'
        + _escaped(encode_json(fingerprint))
        + b"}"
    )


def _escaped(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")
