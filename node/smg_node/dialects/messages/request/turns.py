"""Turns of a conversation: reads the `messages` of a body, and joins their blocks to turns.

Neighbouring messages of one role are one turn. Results of tools come before what the user says in the same
message, and in the order of their calls, however the client sorted them: so a conversation that grows keeps
the beginning of its prompt. System messages stay where they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps
from smg_node.core.generation.request import Turn
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.assistant_turn import AssistantBlocks, AssistantTurn
from smg_node.dialects.messages.request.blocks import (
    RETURNED,
    SHOWN,
    Piece,
    content_of,
    is_blank,
    pieces_at,
    plain_text,
    read_block,
    result_turn,
)
from smg_node.dialects.messages.request.context_edits import first_thought
from smg_node.dialects.messages.request.handed_documents import DocumentCollector
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.system_messages import read_system_message
from smg_node.dialects.messages.tool_runs.block_names import (
    LISTING,
    MCP_USE,
    RUN_BLOCKS,
    SERVER_USE,
)

if TYPE_CHECKING:
    # Loaded with the first conversation that holds runs of tools.
    from smg_node.dialects.messages.request.returned_runs import ReturnedRuns

MESSAGES_MAX: Final = 100_000
_ROLES: Final = ("user", "assistant", "system")
_ID_MAX: Final = 256
_NAME_MAX: Final = 128


def read_turns(
    draft: MessagesDraft, cursor: Cursor, key: str, system: str | None
) -> Steps[tuple[Turn, ...]]:
    """Return the turns of the messages at `key`, behind those of `system`; what is wrong is noted.

    A block is a step, and so is a result of a tool when its turn is made.
    """
    messages = cursor.array(key, required=True, at_least=1, at_most=MESSAGES_MAX) or []
    history = _History(draft, first_thought(messages, draft.edits), _last_user(messages))
    if system is not None:
        history.systems.append(system)
    for index, message in enumerate(messages):
        inside = cursor.element(key, index, message)
        if inside is not None:
            yield from history.add(inside, index)
    turns = yield from history.finished()
    if messages and not turns and not cursor.problems:
        cursor.problem(key, "hold nothing to answer")
    return turns


def _last_user(messages: list[Any]) -> int:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if type(message) is dict and message.get("role") == "user":
            return place
    return -1


@dataclass(slots=True)
class _Call:
    """A call that waits for its result."""

    place: int
    block: Cursor
    answered: bool = False


class _History:
    """Joins messages to turns, one after the other."""

    def __init__(self, draft: MessagesDraft, thoughts_from: int, last_user: int) -> None:
        self._draft = draft
        self._thoughts_from = thoughts_from
        self._last_user = last_user
        self._blocks = AssistantBlocks(draft)
        self._runs: ReturnedRuns | None = None
        self._turns: list[Turn] = []
        self._late: dict[int, list[Turn]] = {}
        """Results of runs that came in a later message, by the places of the turns that they stand before."""
        self._role = ""
        self._waiting: dict[str, _Call] = {}
        self._results: list[tuple[int, Cursor, str]] = []
        self._shown: list[str | Cursor] = []
        self._said = AssistantTurn()
        self._documents = DocumentCollector()
        self.systems: list[str] = []
        """Texts of neighbouring system messages."""

    def add(self, message: Cursor, index: int) -> Steps[None]:
        """Take the next message."""
        yield ITEM_WEIGHT
        role = message.word("role", _ROLES, required=True)
        if role is None:
            return
        if role != self._role:
            if self._role:
                yield from self._close()
            self._role = role
        if role == "user":
            message.only(("role", "content"))
            yield from self._hear(message)
        elif role == "assistant":
            message.only(("role", "content"))
            yield from self._say(message, remembers=index >= self._thoughts_from)
        else:
            read_system_message(self._draft, message, self.systems, passed=index < self._last_user)

    def finished(self) -> Steps[tuple[Turn, ...]]:
        """Return all turns; an assistant's text at the end is what the answer goes on from."""
        said = self._said
        if self._role == "assistant" and not (said.calls or said.is_nothing):
            self._close_system()
            self._prefill()
        else:
            yield from self._close()
        if self._runs is not None:
            self._runs.open_calls()
        turns = self._turns
        if self._late:
            turns = self._with_late_results()
        self._draft.prompt["handed"] = self._documents.handed()
        return tuple(turns)

    def _with_late_results(self) -> list[Turn]:
        """Return the turns with the results of runs that came later than their calls, all put in at once."""
        places = sorted(self._late)
        self._documents.shift(places, [len(self._late[place]) for place in places])
        turns: list[Turn] = []
        at = 0
        for place in places:
            turns += self._turns[at:place]
            turns += self._late[place]
            at = place
        return turns + self._turns[at:]

    # ── Users ────────────────────────────────────────────────────────────────

    def _hear(self, message: Cursor) -> Steps[None]:
        content = message.raw("content", required=True)
        if type(content) is str:
            self._shown.append(content)
            return
        if content is None:
            return
        if type(content) is not list:
            why = f"must be a string or an array of blocks, not {kind_of(content)}"
            message.problem("content", why, "invalid_type")
            return
        if not content:
            message.problem("content", "must not be an empty array")
        for at, block in enumerate(content):
            yield ITEM_WEIGHT
            text = plain_text(block)
            if text is not None:
                self._shown.append(text)
                continue
            inside = message.element("content", at, block)
            if inside is None:
                continue
            if block.get("type") == "tool_result":
                self._take_result(inside)
            else:
                self._shown.append(inside)

    def _take_result(self, block: Cursor) -> None:
        block.only(("type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"))
        check_cache_control(block)
        block.text("toolset_name", characters_max=_NAME_MAX)
        call_id = block.text("tool_use_id", required=True, characters_min=1, characters_max=_ID_MAX)
        if call_id is None:
            return
        call = self._waiting.get(call_id)
        if call is None:
            why = f"no call of the assistant's message before has the id {quoted(call_id)}"
            block.problem("tool_use_id", why)
        elif call.answered:
            block.problem("tool_use_id", f"the call {quoted(call_id)} has a result already")
        else:
            call.answered = True
            self._results.append((call.place, block, call_id))

    def _close_user(self) -> Steps[None]:
        draft, turns = self._draft, self._turns
        pieces: list[Piece]
        results = self._results
        if results:
            if len(results) > 1:
                results.sort(key=_place)
            for _, block, call_id in results:
                yield ITEM_WEIGHT
                pieces = pieces_at(draft, block, "content", RETURNED)
                failed = block.flag("is_error")
                turns.append(result_turn(pieces, call_id, failed=failed or False))
            self._results = []
        if not self._shown:
            return
        pieces = []
        documents: dict[int, Mapping[str, Any]] = {}
        for each in self._shown:
            yield ITEM_WEIGHT
            if type(each) is str:
                pieces.append(each)
            elif isinstance(each, Cursor):
                draft.framed = None
                pieces += read_block(draft, each, SHOWN)
                if draft.framed is not None:
                    documents[len(pieces) - 1] = draft.framed
        self._shown = []
        content = content_of(pieces)
        if not results or not is_blank(content):
            self._expect_no_results()
            if self._runs is not None and not results:
                # Beside results of the client's own they are run now.
                self._runs.expect_results(before_turn=self._runs.turn)
            if documents:
                self._documents.add(len(turns), pieces, documents)
            turns.append(Turn("user", content))

    def _expect_no_results(self) -> None:
        """Note the calls that were never answered, now that the conversation goes on."""
        for call_id, call in self._waiting.items():
            if not call.answered:
                why = f"the call {quoted(call_id)} has no result in the message behind it"
                call.block.problem("id", why)
        self._waiting = {}

    # ── Assistants ───────────────────────────────────────────────────────────

    def _say(self, message: Cursor, *, remembers: bool) -> Steps[None]:
        self._said.last = message
        content = message.raw("content", required=True)
        if type(content) is str:
            self._say_text(content)
            return
        if content is None:
            return
        if type(content) is not list:
            why = f"must be a string or an array of blocks, not {kind_of(content)}"
            message.problem("content", why, "invalid_type")
            return
        for at, block in enumerate(content):
            yield ITEM_WEIGHT
            text = plain_text(block)
            if text is not None:
                self._say_text(text)
                continue
            inside = message.element("content", at, block)
            if inside is not None:
                yield self._take_said(inside, remembers=remembers)

    def _say_text(self, text: str) -> None:
        if self._said.results and (not text or text.isspace()):
            return
        self._go_on()
        self._said.say(text)

    def _take_said(self, block: Cursor, *, remembers: bool) -> int:
        """Take a block, and return how many characters were opened or encoded."""
        kind = block.text("type", required=True)
        if kind in RUN_BLOCKS and self._draft.options.tool_servers:
            return self._take_run(block, kind)
        self._go_on()
        return self._blocks.take(self._said, block, kind, remembers=remembers)

    def _take_run(self, block: Cursor, kind: str) -> int:
        """Take a block of a run on this node's side."""
        if self._runs is None:
            from smg_node.dialects.messages.request.returned_runs import ReturnedRuns

            self._runs = ReturnedRuns(self._draft)
            self._runs.turn = len(self._turns)
        runs = self._runs
        if kind == LISTING:
            runs.read_listing(block)
        elif kind in (MCP_USE, SERVER_USE):
            self._go_on()
            call = runs.read_call(block, kind)
            if call is None:
                return 0
            if call.call_id in self._said.blocks:
                block.problem("id", f"two calls have the id {quoted(call.call_id)}")
            self._said.run(call, block)
            return len(call.arguments)
        else:
            found = runs.read_result(block, kind)
            if found is not None:
                self._take_run_result(*found)
                return len(found[0].content or "")
        return 0

    def _take_run_result(self, result: Turn, place: int) -> None:
        if place < 0:
            assert result.answers_call is not None
            self._said.results[result.answers_call] = result
            return
        self._late.setdefault(place, []).append(result)
        self._said.resumed = True

    def _go_on(self) -> None:
        """Begin another turn where results stand between what was said and what follows, unless a client's call waits."""
        said = self._said
        if said.results and not said.blocks:
            self._close_part()
            self._said = AssistantTurn(last=said.last, forgot=said.forgot, resumed=True)

    def _close_assistant(self) -> None:
        said = self._said
        self._draft.forgotten_turns += said.forgot
        self._close_part()
        self._said = AssistantTurn()
        if self._runs is not None:
            self._runs.expect_results(before_turn=self._runs.turn)
            self._runs.turn += 1
        for place, (call_id, block) in enumerate(said.blocks.items()):
            self._waiting[call_id] = _Call(place, block)

    def _close_part(self) -> None:
        """Add the turn of what was said, and those of its results."""
        self._expect_no_results()
        if not self._said.is_nothing:
            self._turns += self._said.turns()
        if self._runs is not None:
            self._runs.placed(len(self._turns))

    def _prefill(self) -> None:
        """Take what an assistant has begun to say; nothing at all is no beginning."""
        last = self._said.last
        assert last is not None, "an assistant's turn has a message"
        self._close_assistant()
        content = self._turns[-1].content
        if not content:
            self._turns.pop()
            return
        assert type(content) is str, "an assistant says nothing but texts"
        self._draft.prefilled = last.path("content")
        if content[-1].isspace():
            last.problem("content", "the assistant's last text must not end with white space")

    # ── Ends ─────────────────────────────────────────────────────────────────

    def _close(self) -> Steps[None]:
        # The `system` parameter waits for a first message that is no system message.
        self._close_system()
        if self._role == "user":
            yield from self._close_user()
        elif self._role == "assistant":
            self._close_assistant()

    def _close_system(self) -> None:
        if self.systems:
            self._turns.append(Turn("system", "\n".join(self.systems)))
            self.systems = []


def _place(result: tuple[int, Cursor, str]) -> int:
    return result[0]
