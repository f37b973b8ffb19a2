"""Presenter of generateContent: events to frames, a whole answer to a body.

Every frame is an answer of its own with the parts that are new: `data: {…}` and an empty line, both ended
by CR and LF, or an element of one JSON array. A call is one part. Thoughts are shown where they are asked
for; what a thought said is always carried in a signature, on the part of the call it led to, else on an
empty text behind everything. The last choice's last frame waits for the usage that it has.

A vendor's opaque state stands on the part it belongs to; for text and thoughts, which have left by then, on an empty
one behind them. Google's own signature is what that vendor made it, and needs no thought beside it.

    data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],"modelVersion":…

Official clients take a comment, an event's name or `[DONE]` for a broken answer, and do not keep a turn in
which a frame had no part.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.answer import Answer, Choice
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Listed,
    PromptEcho,
    RunEnd,
    RunNote,
    RunStart,
    TokenLogprob,
    Usage,
)
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.gemini.answer_objects import (
    FINISH,
    average,
    call_part,
    logprobs_object,
    usage_object,
)
from smg_node.dialects.gemini.signatures import State, is_googles, signature_with
from smg_node.dialects.gemini.view import GeminiView
from smg_node.dialects.google_errors import error_body
from smg_node.dialects.openai.frames import encode_json, json_line, json_text

KEEPALIVE: Final = (
    b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}\r\n\r\n'
)
"""A frame that says nothing. One without a candidate would make official chats forget the turn."""
ARRAY_KEEPALIVE: Final = b"\n"
"""White space, which may stand anywhere between the elements of an array."""
_THOUGHT: Final = b'"thought":true,'


class GeminiPresenter:
    """Renders one generation. `sign` returns the signature that carries a thought."""

    def __init__(self, reading: ParsedBody[GeminiView], sign: Callable[[str], str]) -> None:
        self._view = reading.view
        self._logprobs = reading.request.sampling.logprobs is not None
        self._sign = sign
        choices = reading.request.choices
        self._unfinished = choices
        self._ending = b""
        """End of every frame but the last, from its candidates on."""
        self._before, self._after = (
            (b",\r\n", b"") if self._view.array else (b"data: ", b"\r\n\r\n")
        )
        self._begun = False
        self._frames: list[tuple[bytes, bytes] | None] = [None] * choices
        """Around the text of each choice's open block, where there is nothing else to show."""
        self._kinds = [""] * choices
        self._thoughts = [""] * choices
        """What each choice thought since its last signature."""
        self._refused = [False] * choices
        self._last: dict[str, Any] = {}

    # ── Streamed ─────────────────────────────────────────────────────────────

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; an error is the last one at Fail."""
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                prepared = self._frames[event.choice]
                if prepared is None:
                    self._slow_delta(event, out)
                elif event.text:
                    out.append(prepared[0] + json_text(event.text) + prepared[1])
            else:
                _RARE[type(event)](self, event, out)
        told = b"".join(out)
        if self._view.array and told and not self._begun:
            self._begun = True
            return b"[" + told.removeprefix(b",")
        return told

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        prepared = self._frames[0]
        if prepared is None or (self._view.array and not self._begun):
            return None
        return FrameTemplate(*prepared, json_text)

    def _begin(self, event: Begin, _out: list[bytes]) -> None:
        self._ending = b'],"modelVersion":%b,"responseId":%b}' % (
            json_text(event.model),
            json_text(event.id),
        )

    def _start(self, event: BlockStart, _out: list[bytes]) -> None:
        self._kinds[event.choice] = event.kind
        marks = self._marks(event.kind)
        if marks is not None and not self._logprobs:
            head = b'%b{"candidates":[{"content":{"role":"model","parts":[{%b"text":'
            tail = b'}]},"index":%d}' % event.choice + self._ending + self._after
            self._frames[event.choice] = (head % (self._before, marks), tail)

    def _marks(self, kind: str) -> bytes | None:
        """Return what stands before the text of a block of this kind; None for one that is not shown as it comes."""
        if kind in ("text", "refusal"):
            return b""
        return _THOUGHT if kind == "reasoning" and self._view.thoughts else None

    def _slow_delta(self, event: Delta, out: list[bytes]) -> None:
        marks = self._marks(self._kinds[event.choice])
        if marks is None or not (event.text or event.logprobs):
            return
        part: dict[str, Any] = {"thought": True} if marks else {}
        candidate = _candidate(event.choice, [{**part, "text": event.text}])
        out.append(self._frame(_with_rows(candidate, event.logprobs)))

    def _end(self, event: BlockEnd, out: list[bytes]) -> None:
        choice = event.choice
        self._frames[choice] = None
        if event.kind == "refusal":
            self._refused[choice] = True
        signature = self._signed(event)
        if event.kind == "call":
            part = call_part(event.name, event.call_id, event.text, signature)
            out.append(self._frame(_candidate(choice, [part])))
        elif signature:
            part = {"thought": True} if event.kind == "reasoning" else {}
            part |= {"text": "", "thoughtSignature": signature}
            out.append(self._frame(_candidate(choice, [part])))

    def _signed(self, block: BlockEnd) -> str:
        """Return the signature of the part that a block is, "" for none; a thought without one is kept for the next."""
        choice, opaque = block.choice, block.opaque
        is_thought = block.kind == "reasoning"
        if is_thought:
            self._thoughts[choice] += block.text
        if not opaque:
            return self._signature(choice) if block.kind == "call" else ""
        if is_googles(State(opaque)) or (is_thought and self._view.thoughts):
            # What its vendor keeps, or its client has, needs no seal.
            self._thoughts[choice] = ""
        return signature_with(State(opaque, self._signature(choice)))

    def _signature(self, choice: int) -> str:
        """Return the signature of what was thought since the last one, "" for nothing."""
        thought, self._thoughts[choice] = self._thoughts[choice], ""
        return self._sign(thought) if thought else ""

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        signature = self._signature(event.choice)
        part = {"text": "", "thoughtSignature": signature} if signature else {"text": ""}
        candidate = _candidate(event.choice, [part], self._reason(event))
        self._unfinished -= 1
        if self._unfinished:
            out.append(self._frame(candidate))
        else:
            self._last = candidate

    def _reason(self, event: Finish) -> str:
        refused = self._refused[event.choice] and event.reason == "stop"
        return FINISH["refusal" if refused else event.reason]

    def _usage(self, event: Usage, out: list[bytes]) -> None:
        usage = b',"usageMetadata":%b}' % encode_json(usage_object(event))
        out.append(self._frame(self._last, self._ending[:-1] + usage))

    def _over(self, _event: End, out: list[bytes]) -> None:
        if self._view.array:
            out.append(b"\r\n]")

    def _fail(self, event: Fail, out: list[bytes]) -> None:
        out.append(self._before + error_body(event.error) + self._after)
        if self._view.array:
            out.append(b"\r\n]")

    def _nothing(self, _event: Event, _out: list[bytes]) -> None:
        """Say nothing: this API has no echo, and none of its requests asks for tools of this node."""

    def _frame(self, candidate: Mapping[str, Any], ending: bytes = b"") -> bytes:
        head = b'%b{"candidates":[%b' % (self._before, json_line(candidate))
        return head + (ending or self._ending) + self._after

    # ── Whole ────────────────────────────────────────────────────────────────

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        candidates = [self._whole(index, choice) for index, choice in enumerate(answer.choices)]
        body = {
            "candidates": candidates,
            "usageMetadata": usage_object(answer.usage),
            "modelVersion": answer.begin.model,
            "responseId": answer.begin.id,
        }
        return encode_json(body)

    def _whole(self, index: int, choice: Choice) -> dict[str, Any]:
        assert choice.finish is not None, "a whole answer has finished"
        parts: list[dict[str, Any]] = []
        for block in choice.blocks:
            self._refused[index] = self._refused[index] or block.kind == "refusal"
            parts += self._part(block)
        signature = self._signature(index)
        if signature:
            _last_text(parts)["thoughtSignature"] = signature
        candidate = _candidate(index, parts or [{"text": ""}], self._reason(choice.finish))
        if self._logprobs and choice.logprobs:
            shown = ("text", "reasoning") if self._view.thoughts else ("text",)
            rows = choice.logprobs_of(*shown)
            return (
                {**_with_rows(candidate, rows), "avgLogprobs": average(rows)} if rows else candidate
            )
        return candidate

    def _part(self, block: BlockEnd) -> list[dict[str, Any]]:
        """Return the part of a block; none for one that is not shown and has no signature."""
        signature = self._signed(block)
        if block.kind == "call":
            return [call_part(block.name, block.call_id, block.text, signature)]
        thought = block.kind == "reasoning"
        text = "" if thought and not self._view.thoughts else block.text
        part: dict[str, Any] = {"thought": True, "text": text} if thought else {"text": text}
        if signature:
            part["thoughtSignature"] = signature
        return [part] if text or signature else []


def _last_text(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last part if it is an unsigned text that answers; else an empty one, which is the last then."""
    if not parts or "text" not in parts[-1] or {"thought", "thoughtSignature"} & parts[-1].keys():
        parts.append({"text": ""})
    return parts[-1]


def _candidate(index: int, parts: list[dict[str, Any]], reason: str = "") -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}}
    if reason:
        candidate["finishReason"] = reason
    candidate["index"] = index
    return candidate


def _with_rows(candidate: dict[str, Any], rows: Sequence[TokenLogprob]) -> dict[str, Any]:
    return {**candidate, "logprobsResult": logprobs_object(rows)} if rows else candidate


# By type, in one step: a match over classes takes 0.4 us.
_RARE: Final[Mapping[type, Callable[[GeminiPresenter, Any, list[bytes]], None]]] = {
    Begin: GeminiPresenter._begin,
    **dict.fromkeys((PromptEcho, Listed, RunStart, RunNote, RunEnd), GeminiPresenter._nothing),
    BlockStart: GeminiPresenter._start,
    BlockEnd: GeminiPresenter._end,
    Finish: GeminiPresenter._finish,
    Usage: GeminiPresenter._usage,
    End: GeminiPresenter._over,
    Fail: GeminiPresenter._fail,
}
