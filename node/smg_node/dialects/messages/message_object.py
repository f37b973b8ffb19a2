"""Message object: a finished generation as the body of an answer, and its parts as a stream has them.

What a block shows is decided here for both: blank text between other blocks is none, and a text that
follows or precedes another block has no blanks on that side.
"""

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.core.generation.answer import Answer
from smg_node.core.generation.events import Begin, BlockEnd, Finish, FinishReason, Usage
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.dialects.messages.argument_gate import ArgumentGate
from smg_node.dialects.messages.carried_state import (
    Place,
    carried_signature,
    envelope_at,
    redaction,
)
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.openai.frames import encode_json, json_line, json_text
from smg_node.dialects.thought_seals import ThoughtSeals

BLANKS: Final = " \t\r\n"
NULL: Final = b"null"
_TOOL_ID_BYTES: Final = 12
_ID_DIGITS: Final = 48
_REASONS: Final[dict[FinishReason, bytes]] = {
    "stop": b"end_turn",
    "length": b"max_tokens",
    "tool_calls": b"tool_use",
    "content_filter": b"refusal",
    "refusal": b"refusal",
    "pause": b"pause_turn",
    "context_window": b"model_context_window_exceeded",
}
_REFUSED: Final = b'{"type":"refusal","category":null,"explanation":null}'
_UNDIAGNOSED: Final = b',"diagnostics":{"cache_miss_reason":{"type":"unavailable"}}'

_CREATED: Final = (
    b'"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},'
    b'"cache_creation_input_tokens":%d'
)
NONE_CREATED: Final = _CREATED % (0, 0, 0)
"""What an answer says of tokens newly cached where none are known: no engine's figure is, only vendors' are."""
MESSAGE: Final = (
    b'{"id":"%b","type":"message","role":"assistant","model":%b,"content":%b,"stop_reason":%b,'
    b'"stop_sequence":%b,"stop_details":%b,"container":null,"usage":{"input_tokens":%d,%b,'
    b'"cache_read_input_tokens":%d,"output_tokens":%d,'
    b'"output_tokens_details":{"thinking_tokens":%d},'
    b'"service_tier":%b,"inference_geo":"not_available"}%b}'
)
"""A message, with places for what differs."""
_TEXT: Final = b'[{"type":"text","text":%b}]'


class Ending(NamedTuple):
    """How an answer ended, as JSON: its reason, the stop string that did it, and what a refusal says."""

    reason: bytes
    sequence: bytes
    details: bytes


class Counts(NamedTuple):
    """Tokens of an answer as clients are told of them: `input` are those that no cache had or got, `created` says in
    JSON which ones a cache got.
    """

    input: int
    created: bytes
    cached: int
    output: int
    thinking: int


class Signer:
    """Signs the thoughts of one answer: with `omitted`, a signature carries the thought."""

    __slots__ = ("_model", "_seals", "_tenant", "omitted")

    def __init__(self, seals: ThoughtSeals, *, tenant: str, model: str, omitted: bool) -> None:
        self._seals = seals
        self._tenant = tenant
        self._model = model
        self.omitted = omitted

    def signature(self, thought: str) -> str:
        """Return the signature of a thought as it is shown, or would be."""
        make = self._seals.seal if self.omitted else self._seals.sign
        return make(thought, tenant=self._tenant, model=self._model)

    def sealed(self, text: str, purpose: str) -> str:
        """Return a text sealed for the tenant, to be opened for this purpose with any model."""
        return self._seals.seal(text, tenant=self._tenant, model=purpose)


def message_id(begin: Begin) -> str:
    """Return the id of the answer, of as many digits as the ids of what is stored."""
    return "msg_" + (begin.id * 2)[:_ID_DIGITS]


def tool_use_id(begin: Begin, call: int, prefix: str = "toolu_", tail: str = "") -> str:
    """Return the id of an answer's call number `call`: a family's own may hold what clients refuse.

    That of a call of a tool on this node's side ends with the tail of the id by which its model knows it.
    """
    digits = blake2b(f"{begin.id}:{call}".encode(), digest_size=_TOOL_ID_BYTES).hexdigest()
    return prefix + digits[: len(digits) - len(tail)] + tail


_ENDINGS: Final = {
    reason: Ending(b'"%b"' % word, NULL, _REFUSED if word == b"refusal" else NULL)
    for reason, word in _REASONS.items()
}
_OUT_OF_CONTEXT: Final = Ending(b'"model_context_window_exceeded"', NULL, NULL)


def ending_of(
    finish: Finish, begin: Begin, usage: Usage, request: GenerateRequest, *, refused: bool = False
) -> Ending:
    """Return how an answer ended; `refused`: a text of it declines to answer, whatever ended it then."""
    reason, matched = finish.reason, finish.matched
    if matched is not None and reason == "stop" and matched in request.sampling.stop:
        assert isinstance(matched, str), "stop strings are strings"
        return Ending(b'"stop_sequence"', json_text(matched), NULL)
    if begin.room is not None and reason == "length" and usage.completion_tokens >= begin.room:
        return _OUT_OF_CONTEXT
    return _ENDINGS["refusal" if refused and reason == "stop" else reason]


SILENT_ENDING: Final = Ending(b'"max_tokens"', NULL, NULL)


def counts_of(usage: Usage, view: MessagesView, none_created: bytes = NONE_CREATED) -> Counts:
    """Return the tokens of an answer."""
    prompt, cached = usage.prompt_tokens, min(usage.cached_tokens, usage.prompt_tokens)
    written, created = min(usage.cache_write_tokens, prompt - cached), none_created
    if written:
        long = min(usage.cache_write_long_tokens, written)
        created = _CREATED % (written - long, long, written)
    new = prompt - cached - written
    if view.silent:
        return Counts(new, created, cached, 0, 0)
    return Counts(new, created, cached, usage.completion_tokens, usage.reasoning_tokens)


def edits_of(view: MessagesView) -> bytes:
    """Return the member that tells of edits of the context, b"" where none were asked for."""
    if view.applied_edits is None:
        return b""
    return b',"context_management":' + json_line({"applied_edits": view.applied_edits})


def notes_of(view: MessagesView) -> bytes:
    """Return the members of a message that are there from its start, where they were asked for."""
    notes = _UNDIAGNOSED if view.diagnosed else b""
    if view.transformations:
        notes += b',"input_transformations":' + json_line(view.transformations)
    return notes


def trims(request: GenerateRequest) -> bool:
    """Whether blanks at a text's end are left out where another block follows: only calls need that, and
    who could not make any is not kept waiting for it.
    """
    if request.serving is not None:
        return True
    prompt = request.prompts[0]
    return isinstance(prompt, ChatPrompt) and bool(prompt.tools)


def whole_message(
    answer: Answer,
    request: GenerateRequest,
    view: MessagesView,
    content: bytes,
    counts: Counts,
) -> bytes:
    """Return the JSON body of an answer with this content."""
    choice, begin, usage = answer.choices[0], answer.begin, answer.usage
    assert choice.finish is not None, "a whole answer has finished"
    ending = SILENT_ENDING
    if not view.silent:
        refused = any(block.kind == "refusal" for block in choice.blocks)
        ending = ending_of(choice.finish, begin, usage, request, refused=refused)
    return MESSAGE % (
        message_id(begin).encode(),
        encode_json(view.model),
        content,
        *ending,
        *counts,
        encode_json(view.service_tier),
        notes_of(view) + edits_of(view),
    )


def content_of(
    answer: Answer, request: GenerateRequest, view: MessagesView, signer: Signer
) -> bytes:
    """Return the content of an answer in which nothing was run."""
    if view.silent:
        return b"[]"
    choice = answer.choices[0]
    blocks = choice.blocks
    if len(blocks) == 1 and blocks[0].kind == "text" and not blocks[0].opaque:
        text = blocks[0].text
        return _TEXT % (encode_json(text) if text.strip(BLANKS) else b'""')
    content = Content(answer, request, view, signer)
    last = len(blocks) - 1
    for place, block in enumerate(blocks):
        content.add(block, last=place == last)
    return content.encoded()


class Content:
    """Content of a whole answer, block by block."""

    __slots__ = ("_begin", "_calls", "_cut", "_signer", "_trims", "_view", "shown")

    def __init__(
        self, answer: Answer, request: GenerateRequest, view: MessagesView, signer: Signer
    ) -> None:
        finish = answer.choices[0].finish
        self._begin = answer.begin
        self._view, self._signer = view, signer
        self._cut = finish is not None and finish.reason == "length"
        self._trims = trims(request)
        self._calls = 0
        self.shown: list[dict[str, Any]] = []

    def add(self, block: BlockEnd, *, last: bool) -> None:
        """Show a block as far as it shows anything; `last`: none follows it."""
        shown = self.shown
        if block.kind == "reasoning":
            shown += _thought(block, self._signer)
        elif block.kind == "call":
            if block.opaque:
                shown += _enveloped("next", block.opaque)
            shown.append(self._call(block, cut=last and self._cut))
            self._calls += 1
        else:
            text = block.text.lstrip(BLANKS) if shown else block.text
            if text.strip(BLANKS):
                trimmed = self._trims and not last
                shown.append({"type": "text", "text": text.rstrip(BLANKS) if trimmed else text})
                if block.opaque:
                    shown += _enveloped("last", block.opaque)
            elif block.opaque:
                shown += _enveloped("text", block.opaque, block.text)

    def encoded(self) -> bytes:
        """Return the JSON of all of it; an empty text where nothing is shown."""
        return encode_json(self.shown or [{"type": "text", "text": ""}])

    def _call(self, block: BlockEnd, *, cut: bool) -> dict[str, Any]:
        eager = is_eager(block.name, self._view)
        call_id = tool_use_id(self._begin, self._calls)
        given = arguments_of(block, eager=eager, cut=cut)
        return {"type": "tool_use", "id": call_id, "name": block.name, "input": given}


def is_eager(name: str, view: MessagesView) -> bool:
    """Whether a tool's arguments are told as they are printed."""
    return view.eager_all or name in view.eager_tools


def _thought(block: BlockEnd, signer: Signer) -> list[dict[str, Any]]:
    text = block.text.lstrip(BLANKS)
    shown, signature = "" if signer.omitted else text, ""
    if block.opaque:
        redacted = redaction(block)
        if redacted:
            return [{"type": "redacted_thinking", "data": redacted}]
        signature = carried_signature(block, shown)
    if not (text or signature):
        return []
    signature = signature or signer.signature(text)
    return [{"type": "thinking", "thinking": shown, "signature": signature}]


def _enveloped(place: Place, opaque: tuple[Opaque, ...], text: str = "") -> list[dict[str, Any]]:
    """Return the thought that carries the state of another block, if there is any."""
    envelope = envelope_at(place, opaque, text)
    return [{"type": "thinking", "thinking": "", "signature": envelope}] if envelope else []


def arguments_of(block: BlockEnd, *, eager: bool = False, cut: bool = False) -> msgspec.Raw:
    """Return the arguments of a call as the object that clients read; `cut`: the answer was cut off in it."""
    gate = ArgumentGate(eager=eager)
    said = gate.feed(block.text)
    said += gate.finish(cut=cut)
    if gate.broken:
        # Nothing of it is out: what is told of other tools can be told of this one.
        gate = ArgumentGate()
        said = gate.feed(block.text) + gate.finish()
    if cut:
        said = gate.closing(said)
    return msgspec.Raw((said or "{}").encode())
