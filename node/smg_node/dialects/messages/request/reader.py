"""Reader of Messages bodies: a table of parameters, and what is settled when all were taken.

The history is read last: its references name tools, and edits say which of its thoughts are left out.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.core.errors import invalid
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Turn
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.dialect import UNKNOWN, Caller, ParsedBody
from smg_node.dialects.messages.request.context_edits import thinking_edit, tool_uses_cleared
from smg_node.dialects.messages.request.fast_reader import PlainReader
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.output_parameters import (
    settle_thinking,
    take_format,
    take_output_config,
    take_thinking,
)
from smg_node.dialects.messages.request.parameters import STANDING_ALONE, read_later
from smg_node.dialects.messages.request.system_messages import read_system
from smg_node.dialects.messages.request.tools import settle_tools, take_choice, take_tools
from smg_node.dialects.messages.request.turns import read_turns
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.openai.request_draft import problems_for, take_all
from smg_node.dialects.openai.sampling import sampling_of, settle_sampling
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import ThoughtSeals

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

_NO_THREADS: Final = "thread_unsupported_request"

PARAMETERS: Final[dict[str, Any]] = {
    **STANDING_ALONE,
    "messages": read_later,
    "system": read_later,
    "tools": take_tools,
    "tool_choice": take_choice,
    "thinking": take_thinking,
    "output_config": take_output_config,
    "output_format": take_format,
}


class CountedBody(NamedTuple):
    """A body whose tokens are counted: its prompt, and the one without edits if any were asked for.

    `serving` is what it asks of tools on this node's side, whose definitions count as well.
    """

    model: str
    prompt: ChatPrompt
    unedited: ChatPrompt | None
    ignored: tuple[str, ...]
    serving: "ToolServing | None" = None


class MessagesReader:
    """Reads Messages bodies. INVALID_REQUEST names everything that is wrong with one."""

    def __init__(self, options: ReaderOptions, seals: ThoughtSeals) -> None:
        self._options = options
        self._seals = seals
        self._plain = PlainReader(drops_billing=options.drop_billing_block)
        self.read_plain = self._plain.read
        """Returns what a body asks for if it is a plain one; None for any other, right or wrong."""

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> ParsedBody[MessagesView]:
        """Return the parsed body."""
        return whole(self.read_steps(body, caller))

    def read_steps(
        self, body: dict[str, Any], caller: Caller = UNKNOWN
    ) -> Steps[ParsedBody[MessagesView]]:
        """Return the parsed body, read in steps of a block."""
        draft, problems = self._taken(body, caller)
        if not problems.has("max_tokens"):
            problems.raw("max_tokens", required=True)
        turns = yield from self._settled(draft, problems)
        edited = _edited(draft, turns)
        if draft.dropped:
            draft.view["transformations"] = tuple(draft.dropped)
        wanted = draft.request
        request = GenerateRequest(
            prompts=(_prompt(draft, edited),),
            sampling=sampling_of(draft),
            stream=wanted.pop("stream", False),
            ignored=draft.ignored_in(problems.problems),
            **wanted,
        )
        return ParsedBody(request, MessagesView(request.model, **draft.view))

    def read_count(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> CountedBody:
        """Return what `count_steps` does, at once."""
        return whole(self.count_steps(body, caller))

    def count_steps(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> Steps[CountedBody]:
        """Return the prompt whose tokens are counted; what else a body asks for is checked all the same."""
        draft, problems = self._taken(body, caller)
        turns = yield from self._settled(draft, problems)
        prompt = _prompt(draft, _edited(draft, turns))
        unedited = None
        if draft.edits is not None:
            unedited = yield from self._unedited(body, caller)
        ignored = draft.ignored_in(problems.problems)
        return CountedBody(draft.model, prompt, unedited, ignored, draft.request.get("serving"))

    def _unedited(self, body: dict[str, Any], caller: Caller) -> Steps[ChatPrompt]:
        """Return the prompt that the body would have with all thoughts and all results."""
        everything = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
        draft, problems = self._taken({**body, "context_management": everything}, caller)
        turns = yield from self._settled(draft, problems)
        return _prompt(draft, turns)

    def _taken(self, body: dict[str, Any], caller: Caller) -> tuple[MessagesDraft, Cursor]:
        if body.get("thread") is not None:
            # Clients that hear this send the whole conversation instead; no other word would tell them.
            why = "thread: conversations are not kept here; send all messages with each request"
            raise invalid(why, "thread", _NO_THREADS)
        draft = MessagesDraft(self._options, self._seals, caller)
        cursor = Cursor(body, problems_for(self._options))
        take_all(draft, cursor, PARAMETERS)
        if "model" not in draft.request:
            cursor.raw("model", required=True)
        draft.model = draft.request.get("model") or ""
        return draft, cursor

    def _settled(self, draft: MessagesDraft, cursor: Cursor) -> Steps[tuple[Turn, ...]]:
        """Return the turns; raises if anything in the body is wrong."""
        system = read_system(draft, cursor, "system")
        turns = yield from read_turns(draft, cursor, "messages", system)
        settle_tools(draft, cursor)
        settle_thinking(draft, cursor, turns)
        settle_sampling(draft, cursor)
        cursor.problems.check()
        return turns


def _prompt(draft: MessagesDraft, turns: tuple[Turn, ...]) -> ChatPrompt:
    values: dict[str, Any] = {**draft.prompt}
    if draft.template:
        values["kwargs"] = {**draft.template, **values.get("kwargs", {})}
    # Moved, a later system message would change the whole prompt, and no cache of it would fit any more.
    stays = any(turn.role == "system" for turn in turns[1:])
    return ChatPrompt(turns, systems_stay=stays, **values)


def _edited(draft: MessagesDraft, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return the turns after the edits of results; the view is told of all edits."""
    edits = draft.edits
    if edits is None:
        return turns
    told: list[dict[str, object]] = []
    if edits.thinking_asked and draft.forgotten_turns:
        told.append(thinking_edit(draft.forgotten_turns, draft.forgotten_characters))
    if edits.tool_uses is not None:
        more = sum(len(tool.description or "") for tool in draft.tools.values())
        turns, cleared = tool_uses_cleared(turns, edits.tool_uses, more_characters=more)
        if cleared is not None:
            told.append(cleared)
    draft.view["applied_edits"] = tuple(told)
    return turns
