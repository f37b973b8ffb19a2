"""Open block of a streamed chat: the precomputed bytes around its text in a frame."""

from smg_node.core.generation.events import BlockStart, TokenLogprob
from smg_node.dialects.chat.message import reasoning_fields
from smg_node.dialects.chat.state.shown_state import call_state
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.openai.frames import json_line, json_text
from smg_node.dialects.openai.functions import custom_input
from smg_node.dialects.openai.logprobs import CONTENT, THOUGHT


class OpenBlock:
    """A block that has started and not ended.

    `before` and `after` stand around the text inside `delta`; where `before` is None the text is
    not shown. `between` stands before the text's second printing, if there is one. `announced` is
    the inside of the delta that comes first. A `held` block is written in one piece when it ends;
    until then its ids and log probabilities wait here. `rows` names the list of log probabilities that
    its tokens are in, "" for none. `head` and `tail` are the whole frame around
    the text; None where a frame must be put together for each delta. `signed`: what a vendor wants back
    with it is told.
    """

    __slots__ = (
        "after", "announced", "before", "between", "head", "held", "ids", "logprobs", "rows", "signed",
        "tail",
    )  # fmt: skip

    def __init__(
        self,
        before: bytes | None,
        *,
        between: bytes | None = None,
        after: bytes = b"",
        announced: bytes | None = None,
        held: bool = False,
        rows: str = "",
    ) -> None:
        self.before = before
        self.between = between
        self.after = after
        self.announced = announced
        self.held = held
        self.rows = rows
        self.head: bytes | None = None
        self.tail = b""
        self.signed = False
        self.ids: list[int] = []
        self.logprobs: list[TokenLogprob] = []

    def delta(self, text: str) -> bytes:
        """Return the inside of `delta` with `text`; empty if it is not to be shown."""
        if self.before is None:
            return b""
        encoded = json_text(text)
        if self.between is not None:
            encoded += self.between + encoded
        return self.before + encoded + self.after


class _CustomCall(OpenBlock):
    """Call of a custom tool: its input is inside JSON, and known only at its end."""

    __slots__ = ()

    def delta(self, text: str) -> bytes:
        """Return the inside of `delta` with the input in these arguments."""
        return super().delta(custom_input(text))


def open_block(event: BlockStart, view: ChatView, call: int) -> OpenBlock:
    """Return the block that `event` starts; `call` counts the calls before it in this choice."""
    if event.kind == "call":
        if event.name in view.custom_tools:
            return _custom_call(event, call)
        return _legacy_call(event, call) if view.legacy_call else _call(event, call)
    if event.kind == "text":
        return OpenBlock(b'"content":', rows=CONTENT)
    if event.kind == "refusal":
        return OpenBlock(b'"refusal":')
    held = not view.stream_reasoning
    if not view.include_reasoning:
        return OpenBlock(None)
    if not view.separate_reasoning:
        return OpenBlock(b'"content":', held=held, rows=CONTENT)
    first, *second = reasoning_fields(view)
    between = b',"%b":' % second[0].encode() if second else None
    return OpenBlock(b'"%b":' % first.encode(), between=between, held=held, rows=THOUGHT)


def _call(event: BlockStart, call: int) -> OpenBlock:
    announced = b'"tool_calls":[{"index":%d,"id":%b,"type":"function",' % (
        call,
        json_text(event.call_id),
    )
    extra = call_state(event.opaque) if event.opaque else None
    announced += b'"function":{"name":%b,"arguments":""}' % json_text(event.name)
    announced += b"}]" if extra is None else b',"extra_content":%b}]' % json_line(extra)
    before = b'"tool_calls":[{"index":%d,"function":{"arguments":' % call
    block = OpenBlock(before, after=b"}}]", announced=announced)
    block.signed = extra is not None
    return block


def _custom_call(event: BlockStart, call: int) -> OpenBlock:
    announced = b'"tool_calls":[{"index":%d,"id":%b,"type":"custom",' % (
        call,
        json_text(event.call_id),
    )
    announced += b'"custom":{"name":%b,"input":""}}]' % json_text(event.name)
    before = b'"tool_calls":[{"index":%d,"custom":{"input":' % call
    return _CustomCall(before, after=b"}}]", announced=announced, held=True)


def _legacy_call(event: BlockStart, call: int) -> OpenBlock:
    """Open a call in the legacy form, which has a place for the first call only."""
    if call > 0:
        return OpenBlock(None)
    announced = b'"function_call":{"name":%b,"arguments":""}' % json_text(event.name)
    return OpenBlock(b'"function_call":{"arguments":', after=b"}", announced=announced)
