"""Fast presenter: renders the usual event batches of plain Messages bodies from precomputed frames.

A plain body (`GenerateRequest.alike`) declares no tools, and its answer is nearly always one text: then
frames differ in their ids, texts and numbers only. At the first batch of another shape
`MessagesPresenter` takes over for good, after it was given the events shown so far. That both give the same
bytes is tested over streams of all kinds, cut anywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

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
    Usage,
)
from smg_node.dialects.dialect import Caller, ParsedBody
from smg_node.dialects.messages.message_object import (
    BLANKS,
    MESSAGE,
    NONE_CREATED,
    NULL,
    Signer,
    ending_of,
    message_id,
)
from smg_node.dialects.messages.open_block import EMPTY_TEXT, FIRST_TEXT
from smg_node.dialects.messages.presenter import (
    MESSAGE_DELTA,
    MESSAGE_START,
    MESSAGE_STOP,
    NONE_CREATED_SINCE,
    MessagesPresenter,
)
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.openai.frames import encode_json, json_text
from smg_node.dialects.thought_seals import ThoughtSeals

_TEXT_START, _STOP = EMPTY_TEXT
_AROUND: Final = FrameTemplate(FIRST_TEXT.head, FIRST_TEXT.tail, json_text)
_HEAD, _TAIL = FIRST_TEXT


def is_plain(view: MessagesView) -> bool:
    """Whether answers show nothing but what every one has."""
    return not (
        view.silent
        or view.diagnosed
        or view.transformations
        or view.applied_edits is not None
        or view.display == "omitted"
    )


class PlainPresenter(MessagesPresenter):
    """Renders one generation for a plain body with a plain view."""

    _left = False
    """Whether all else is up to `MessagesPresenter`."""
    # What was shown so far.
    _first_shown: Sequence[Event] = ()
    _last_shown: Sequence[Event] = ()

    def __init__(
        self, reading: ParsedBody[MessagesView], caller: Caller, seals: ThoughtSeals
    ) -> None:
        self._request, self._view = reading.request, reading.view
        self._caller, self._seals = caller, seals

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; see `MessagesPresenter`."""
        if self._left:
            return super().frames(events)
        # Nearly every batch is one token; by the types of all its events it would take twice as long.
        if len(events) == 1 and type(events[0]) is Delta:
            text = events[0].text
            return _HEAD + json_text(text) + _TAIL if text else b""
        batch = _BATCHES.get(tuple(map(type, events)))
        return self._long_way(events) if batch is None else batch(self, events)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        if self._left:
            return super().around()
        return _AROUND if self._first_shown and not self._last_shown else None

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        (first,) = answer.choices
        blocks, finish = first.blocks, first.finish
        begin, usage, view = answer.begin, answer.usage, self._view
        if (
            len(blocks) != 1
            or not _is_plain_text(blocks[0])
            or finish is None
            or usage.cache_write_tokens
        ):
            self._takes_over()
            return super().answer(answer)
        text = blocks[0].text
        prompt, cached = usage.prompt_tokens, min(usage.cached_tokens, usage.prompt_tokens)
        return _whole(view.model, view.service_tier) % (
            message_id(begin).encode(),
            encode_json(text) if text.strip(BLANKS) else b'""',
            *ending_of(finish, begin, usage, self._request),
            prompt - cached,
            cached,
            usage.completion_tokens,
            usage.reasoning_tokens,
        )

    # ── Batch by batch ───────────────────────────────────────────────────────

    def _first(self, events: Sequence[Any]) -> bytes:
        begin, start, delta = events
        text = delta.text
        if start.kind != "text" or not text.strip(BLANKS):
            return self._long_way(events)
        self._first_shown, self._begun = events, begin
        view = self._view
        opening = _start(view.model, view.service_tier) % (
            message_id(begin).encode(),
            begin.prompt_tokens,
        )
        return b"".join((opening, _TEXT_START, _HEAD, json_text(text), _TAIL))

    def _last(self, events: Sequence[Any]) -> bytes:
        if events[0].opaque:
            return self._long_way(events)
        self._last_shown = events
        self._finished = events[-1]
        return _STOP

    def _more_and_last(self, events: Sequence[Any]) -> bytes:
        if events[1].opaque:
            return self._long_way(events)
        return self.frames(events[:1]) + self._last(events[1:])

    def _all(self, events: Sequence[Any]) -> bytes:
        first = self._first(events[:3])
        return first + (self.frames(events[3:]) if self._left else self._last(events[3:]))

    def _totals(self, events: Sequence[Any]) -> bytes:
        usage, finished = events[0], self._finished
        if finished is None or usage.cache_write_tokens:
            return self._long_way(events)
        self._over = True
        prompt, cached = usage.prompt_tokens, min(usage.cached_tokens, usage.prompt_tokens)
        told = MESSAGE_DELTA % (
            *ending_of(finished, self._begun, usage, self._request),
            prompt - cached,
            NONE_CREATED_SINCE,
            cached,
            usage.completion_tokens,
            usage.reasoning_tokens,
            b"",
        )
        return told + MESSAGE_STOP

    def _long_way(self, events: Sequence[Event]) -> bytes:
        if not self._left and not self._over:
            self._takes_over()
            # Their frames are out already.
            super().frames((*self._first_shown, *self._last_shown))
        return super().frames(events)

    def _takes_over(self) -> None:
        self._left = True
        caller, request = self._caller, self._request
        signer = Signer(self._seals, tenant=caller.tenant, model=request.model, omitted=False)
        super().__init__(ParsedBody(request, self._view), caller.request_id, signer)


def _is_plain_text(block: BlockEnd) -> bool:
    return block.kind == "text" and not block.opaque


# By all their types at once: what an answer begins with, goes on with and ends with.
_BATCHES: Final[Mapping[tuple[type, ...], Callable[[PlainPresenter, Sequence[Any]], bytes]]] = {
    (Begin, BlockStart, Delta): PlainPresenter._first,
    (BlockEnd, Finish): PlainPresenter._last,
    (Delta, BlockEnd, Finish): PlainPresenter._more_and_last,
    (Begin, BlockStart, Delta, BlockEnd, Finish): PlainPresenter._all,
    (Usage, End): PlainPresenter._totals,
}


@lru_cache(maxsize=256)
def _start(model: str, tier: str) -> bytes:
    """Return the first frame of a model's plain streams, with places for id and prompt tokens."""
    counts = (b"%d", NONE_CREATED, *(b"0",) * 3)
    return _filled(MESSAGE_START, json_text(model), b"[]", (NULL,) * 3, counts, tier)


@lru_cache(maxsize=256)
def _whole(model: str, tier: str) -> bytes:
    """Return a model's plain answer, with places for id, text, ending and counts."""
    content = b'[{"type":"text","text":%b}]'
    counts = (b"%d", NONE_CREATED, *(b"%d",) * 3)
    return _filled(MESSAGE, encode_json(model), content, (b"%b",) * 3, counts, tier)


def _filled(
    template: bytes,
    model: bytes,
    content: bytes,
    ending: Sequence[bytes],
    counts: Sequence[bytes],
    tier: str,
) -> bytes:
    """Return a template with its constant parts, and places for the others."""
    return template.replace(b"%d", b"%b") % (
        b"%b",
        model.replace(b"%", b"%%"),
        content,
        *ending,
        *counts,
        encode_json(tier).replace(b"%", b"%%"),
        b"",
    )
