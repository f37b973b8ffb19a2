"""Request for a generation, independent of any dialect: prompt, sampling, tools, constraint.

A dialect's reader makes a `GenerateRequest`; everything behind it knows only this. All values are
already checked for type and range: a reader that lets a bad value through is at fault.

What every request has is a struct: made in 0.2 us, where a frozen dataclass of so many fields takes 2, and
changed by `msgspec.structs.replace` in as little. None of them can be part of a cycle.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec

from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.tool_owner import ToolOwner

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

# Token ids are kept as unsigned 32-bit integers end to end (`array("I")`): four bytes a token, no
# Python object per id, and a buffer that can be hashed or packed without a copy.
TokenIds: TypeAlias = "array[int]"

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool", "function"]
MediaKind: TypeAlias = Literal["image", "video", "audio", "file"]
MediaDetail: TypeAlias = Literal["", "auto", "low", "high", "original"]
ConstraintKind: TypeAlias = Literal[
    "json_object", "json_schema", "regex", "ebnf", "structural_tag", "choice"
]
GrammarStart: TypeAlias = Literal["engine", "first_token", "after_thought"]

DETAILS: Final[tuple[MediaDetail, ...]] = get_args(MediaDetail)[1:]
"""What a client may say of a picture's detail. Only `low` bounds its size, all others leave it to the model."""

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


def token_ids(values: "list[int] | tuple[int, ...] | bytes" = b"") -> TokenIds:
    """Return `values` as token ids; each must be in 0..2^32-1. Bytes are little-endian uint32."""
    return array("I", values)


class TextPart(msgspec.Struct, frozen=True, gc=False):
    """A run of text inside a turn."""

    text: str


class MediaPart(msgspec.Struct, frozen=True, gc=False):
    """Something to look at or listen to; `source` is a URL or data URL. `where` is its JSON path.

    `kind` is its modality, "file" where only its content tells. `detail` is how closely the client wants a picture
    looked at, "" where it does not say. `uuid` is the client's own name for it, which only ever narrows what counts as
    the same one. `name` is that of a file, "" for none.
    """

    kind: MediaKind
    source: str
    where: str
    detail: MediaDetail = ""
    uuid: str = ""
    name: str = ""


Part: TypeAlias = TextPart | MediaPart


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A call the assistant made in an earlier turn; `arguments` is the JSON text it printed.

    `owner` is set where the tool was one of ours: `name` then becomes the name under which the model knows it now.
    """

    call_id: str
    name: str
    arguments: str
    owner: ToolOwner | None = None


class TurnBlock(msgspec.Struct, frozen=True, gc=False):
    """A block of an assistant's turn at its place: text, a thought or a call, with what its vendor wants back.

    `text` is that of a text or thought, "" for a thought that was not shown, and the arguments of a call as JSON.
    """

    kind: Literal["text", "reasoning", "call"]
    text: str
    name: str = ""
    call_id: str = ""
    opaque: tuple[Opaque, ...] = ()


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One message. `content` keeps the form the client chose: a string, parts, or nothing.

    `blocks` are the same thoughts, texts and calls in their order, where an assistant's turn has opaque state or
    another order than that; templates do not need them, writers for vendors do (`blocks_of`). `extra` carries unknown keys of the message through to the chat template. `references` names the tools whose
    definitions are all that a result tells, for templates that show those themselves.
    """

    role: Role
    content: str | tuple[Part, ...] | None
    name: str | None = None
    reasoning: str | None = None
    calls: tuple[ToolCall, ...] = ()
    answers_call: str | None = None
    extra: Mapping[str, Any] = _NOTHING
    references: tuple[str, ...] = ()
    blocks: tuple[TurnBlock, ...] = ()


def media_of(turns: Iterable[Turn]) -> list[MediaPart]:
    """Return the pictures, clips and files of some turns, in their order."""
    return [
        part
        for turn in turns
        if type(turn.content) is tuple
        for part in turn.content
        if type(part) is MediaPart
    ]


def blocks_of(turn: Turn) -> tuple[TurnBlock, ...]:
    """Return the blocks of an assistant's turn: the thought, the text, the calls, unless it has an order of its own."""
    if turn.blocks:
        return turn.blocks
    found: list[TurnBlock] = []
    if turn.reasoning:
        found.append(TurnBlock("reasoning", turn.reasoning))
    content = turn.content
    text = (
        content
        if content is None or isinstance(content, str)
        else "".join(part.text for part in content if isinstance(part, TextPart))
    )
    if text:
        found.append(TurnBlock("text", text))
    found += [TurnBlock("call", call.arguments, call.name, call.call_id) for call in turn.calls]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; `parameters` is its JSON Schema or None, at the JSON path `where`.

    `form` is what a custom tool's input is to match; it is told to the model, and no engine is held to it.
    A `deferred` tool may be called, but the prompt's list of tools leaves it out: the model learns of it later. `builtin`
    is the kind of a built-in tool, for families that have learnt a form of their own for it.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool = False
    where: str = field(default="tools", compare=False)
    form: "Constraint | None" = field(default=None, compare=False)
    deferred: bool = False
    builtin: str = ""


ToolMode: TypeAlias = Literal["auto", "none", "required", "named"]


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools must, may or must not be called.

    `name` is the function of `named`. `allowed` are the only ones that may be called, None for all. With
    `parallel` false at most one is called. `where` is the JSON path of what asked for it.
    """

    mode: ToolMode = "auto"
    name: str = ""
    allowed: tuple[str, ...] | None = None
    parallel: bool = True
    where: str = "tool_choice"


CHOICE_UNSAID: Final = ToolChoice()
"""What most requests say of calls."""


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much the model should think before it answers.

    `on` is whether it should at all; None leaves that to the effort, of which `none` is off.
    `number` is an effort for templates that take one as a number. `budget` is in tokens. `adaptive`
    leaves it to the model where it can. None is where nothing was given; `where` is the JSON path
    of what was.
    """

    effort: Effort | None = None
    budget: int | None = None
    adaptive: bool = False
    where: str = "reasoning_effort"
    on: bool | None = None
    number: float | None = None

    @property
    def said(self) -> bool:
        """Whether the client asked for anything here."""
        wishes = (self.effort, self.budget, self.on, self.number)
        return self.adaptive or any(wish is not None for wish in wishes)


NOTHING_SAID: Final = Thinking()
"""What most requests say of thinking."""


class HandedDocuments(msgspec.Struct, frozen=True, gc=False):
    """Documents that stand in users' turns, for templates that want them beside the messages.

    `contents` are the contents of those turns without them, each with the turn's place.
    """

    documents: tuple[Mapping[str, Any], ...]
    contents: tuple[tuple[int, str | tuple[Part, ...]], ...]


class ChatPrompt(msgspec.Struct, frozen=True, gc=False):
    """Turns to be rendered by the model's own chat template."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = CHOICE_UNSAID
    thinking: Thinking = NOTHING_SAID
    template: str | None = None
    """Template text from the request; only where `templates.allow_from_request` is on."""
    kwargs: Mapping[str, Any] = _NOTHING
    documents: tuple[Mapping[str, Any], ...] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = False
    where: str = "messages"
    systems_stay: bool = False
    """Whether a later system message is told at its place even by a template that moves it or leaves it out."""
    handed: HandedDocuments | None = None


def with_loaded_tools(prompt: ChatPrompt) -> ChatPrompt:
    """Return a prompt without the deferred tools that its model does not know yet, for who has no search of their own.

    Known are those that a result refers to, that were called, or that must be called now: behind the others, in the order
    in which they became known. The choice allows nothing that is left out.
    """
    if not any(tool.deferred for tool in prompt.tools):
        return prompt
    known: dict[str, None] = {}
    for turn in prompt.turns:
        known.update(dict.fromkeys(turn.references))
        known.update(dict.fromkeys(call.name for call in turn.calls))
    choice = prompt.choice
    if choice.mode == "named":
        known[choice.name] = None
    later = {tool.name: tool for tool in prompt.tools if tool.deferred}
    tools = (
        *(tool for tool in prompt.tools if not tool.deferred),
        *(later[name] for name in known if name in later),
    )
    if choice.allowed is not None:
        names = {tool.name for tool in tools}
        choice = replace(choice, allowed=tuple(name for name in choice.allowed if name in names))
    return msgspec.structs.replace(prompt, tools=tools, choice=choice)


class TextPrompt(msgspec.Struct, frozen=True, gc=False):
    """Text to be encoded as it is."""

    text: str
    add_special_tokens: bool = True
    where: str = "prompt"


class TokenPrompt(msgspec.Struct, frozen=True, gc=False):
    """Token ids, taken as they are."""

    ids: TokenIds
    where: str = "prompt"


Prompt: TypeAlias = ChatPrompt | TextPrompt | TokenPrompt


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar the engine must hold the output to; `value` is the schema, pattern or grammar text.

    For `choice` the value is a JSON list of strings; for `json_object` it is empty. `where` is the
    JSON path of the parameter that asked for it. Without `strict` an engine that cannot hold to it does what
    it can. `begins` is where the grammar begins: where the engine thinks it should, at the first token, or
    behind the thought that the prompt's end has opened.
    """

    kind: ConstraintKind
    value: str
    where: str
    strict: bool = True
    begins: GrammarStart = "engine"


class Sampling(msgspec.Struct, frozen=True, gc=False):
    """How tokens are drawn. None means unset: the model's own default applies.

    `logprobs` is None for off, else how many alternatives (0..20) go with each token.
    `where` maps a field name to the client's spelling, for errors (`max_tokens` may have been
    `max_completion_tokens`).
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float | None = None
    seed: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    keep_stop: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    logit_bias: Mapping[int, float] = _NOTHING
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    constraint: Constraint | None = None
    adapter: str | None = None
    where: Mapping[str, str] = _NOTHING

    def path(self, name: str) -> str:
        """Return the client's own spelling of field `name`."""
        return self.where.get(name, name)


class GenerateRequest(msgspec.Struct, frozen=True, gc=False):
    """One generation: every prompt times `sampling.n` choices, in one stream of events.

    Choice `p * n + k` is answer k of prompt p. `ignored` names the parameters that were understood
    or tolerated and have no effect on this node (told to the client in a header).
    """

    model: str
    prompts: tuple[Prompt, ...]
    sampling: Sampling
    stream: bool
    echo: bool = False
    prompt_ids: bool = False
    """Whether the prompt's ids are wanted back, in a PromptEcho."""
    max_tokens_clamped: bool = True
    """Whether prompt + max_tokens over the context is clamped (true) or refused."""
    truncate_prompt_tokens: int | None = None
    """Keep only that many last prompt tokens; -1 means as many as fit."""
    timeout_s: float | None = None
    routing_key: str | None = None
    ignored: tuple[str, ...] = ()
    alike: bool = False
    """Whether it is one chat of plain turns, whole, with one answer, and its `sampling` one object with that of all of them that are drawn so.

    What follows from that may be kept: such requests differ in their turns only.
    """
    polled: bool = False
    """Whether its client may look at the answer before it is whole, though it does not stream."""
    serving: "ToolServing | None" = None
    """What it asks of tools on this node's side; None for nothing, as most requests do."""

    @property
    def choices(self) -> int:
        """How many answers this request has in all."""
        return len(self.prompts) * self.sampling.n
