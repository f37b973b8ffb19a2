"""Reader of Responses bodies: a table of parameters; also for `compact` and `input_tokens`.

Every parameter the API knows is a row of `PARAMETERS`; what it does stands beside its name in the
module the row comes from. Fields that answers repeat of a body (`Draft.view`) are kept by the names
of the public object.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Thinking, ToolChoice
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.constraint import CONSTRAINTS
from smg_node.dialects.openai.extras import EXTRAS
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import Draft, Take, integer, problems_for, take_all
from smg_node.dialects.openai.sampling import SAMPLING, sampling_of, settle_sampling
from smg_node.dialects.openai.template_variables import VARIABLES
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_types import APPROVAL_RESPONSE, ITEM_REFERENCE
from smg_node.dialects.responses.request.input_items import read_items, user_message
from smg_node.dialects.responses.request.metadata_parameters import LABELS
from smg_node.dialects.responses.request.output_parameters import FORM
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.dialects.responses.request.tool_choice import settle_tool_choice
from smg_node.dialects.responses.request.tools import TOOLS, settle_tools
from smg_storage.ids import is_id

# Engines keep lengths in 32 bits. Whatever is longer means "as long as fits" just the same.
_INT32_MAX: Final = 2**31 - 1
# One answer, as long as `max_output_tokens`, of the prompt that the items are: nothing else is known of it.
_NOT_HERE: Final = frozenset(
    {
        "max_completion_tokens", "max_tokens", "prompt_logprobs", "response_format",
        "return_token_ids", "return_tokens_as_token_ids", "truncate_prompt_tokens", "best_of",
        "verbosity", "reasoning_effort", "prediction",
    }
)  # fmt: skip


def take_input(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `input`: a string is one message of the user."""
    value = cursor.values[key]
    if type(value) is str:
        draft.request["items"] = (user_message(value),) if value else ()
    elif type(value) is list:
        items = read_items(cursor, key, PartCounter(draft.options))
        draft.request["items"] = items
        draft.request["references"] = tuple(i.id for i in items if i.type == ITEM_REFERENCE)
    else:
        why = f"must be a string or an array of items, not {kind_of(value)}"
        cursor.problem(key, why, "invalid_type")


def take_instructions(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `instructions`; an earlier response's are not inherited."""
    draft.request["instructions"] = cursor.text(key)


def take_max_output(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the maximum length of an answer."""
    value = cursor.integer(key, low=1)
    if value is not None:
        draft.draw("max_tokens", min(value, _INT32_MAX), key)
        draft.view[key] = value


def take_previous(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the previous response's id; an invalid id counts as not found."""
    value = cursor.text(key, characters_min=1)
    if value is None:
        return
    if value.startswith("int_"):
        why = f"{quoted(value)} was made by the Interactions API; it is continued there"
        cursor.problem(key, why, "previous_response_not_found")
        return
    if not is_id(value):
        why = f"there is no response {quoted(value)}"
        cursor.problem(key, why, "previous_response_not_found")
        return
    draft.request["previous_response_id"] = value


def take_conversation(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the conversation: its id, or an object with it."""
    value = cursor.values[key]
    if type(value) is dict:
        inside = Cursor(value, cursor.problems, cursor, key)
        inside.only(("id",))
        value = inside.text("id", required=True, characters_min=1)
    else:
        value = cursor.text(key, characters_min=1)
    if value is not None:
        draft.request["conversation_id"] = value


def _number(name: str) -> Take:
    take_number = SAMPLING[name]

    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        take_number(draft, cursor, key)
        if name in draft.sampling:
            draft.view[name] = draft.sampling[name]

    return take


PARAMETERS: Final[Mapping[str, Take]] = {
    **{
        name: take
        for table in (SAMPLING, CONSTRAINTS, EXTRAS, VARIABLES)
        for name, take in table.items()
        if name not in _NOT_HERE
    },
    **{
        name: _number(name)
        for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty")
    },
    **FORM,
    **LABELS,
    **TOOLS,
    "input": take_input,
    "instructions": take_instructions,
    "max_output_tokens": take_max_output,
    "min_tokens": integer("min_tokens", 0, _INT32_MAX),
    "previous_response_id": take_previous,
    "conversation": take_conversation,
}


def _settle(draft: Draft, cursor: Cursor) -> None:
    """Check what depends on several parameters."""
    settle_sampling(draft, cursor)
    settle_tools(draft, cursor)
    settle_tool_choice(draft, cursor)
    if "model" not in draft.request:
        cursor.raw("model", required=True)
    goes_on = cursor.has("previous_response_id") or cursor.has("conversation")
    if cursor.has("previous_response_id") and cursor.has("conversation"):
        cursor.problem("conversation", "cannot be combined with previous_response_id")
    if not goes_on and not cursor.values.get("input"):
        why = "may only be empty with previous_response_id or conversation"
        cursor.problem("input", why, "missing_required_parameter")
    if draft.options.tool_servers:
        _settle_serving(draft)
    if draft.request.get("background") and draft.request.get("store") is False:
        cursor.problem("background", "is only allowed when store is true")


def _settle_serving(draft: Draft) -> None:
    """Say of the tools that this node runs what other parameters say; an approval has to do with them, whatever is named."""
    serving = draft.request.get("serving")
    answers = any(item.type == APPROVAL_RESPONSE for item in draft.request.get("items", ()))
    if serving is None and not answers:
        return
    from smg_node.core.generation.tool_serving import ToolServing

    draft.request["serving"] = structs.replace(
        serving or ToolServing(),
        calls_max=draft.view.get("max_tool_calls"),
        approvals=True,
        stored=draft.request.get("store", True),
    )


class ResponsesReader:
    """Reads Responses bodies."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options

    def read(self, body: dict[str, Any]) -> ResponseRequest:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it.

        NOT_FOUND `conversation_not_found` for a conversation whose name can be no id.
        """
        draft = Draft(self._options)
        cursor = Cursor(body, problems_for(self._options))
        take_all(draft, cursor, PARAMETERS)
        _settle(draft, cursor)
        cursor.problems.check()
        wanted, prompt, view = draft.request, draft.prompt, draft.view
        conversation = wanted.get("conversation_id", "")
        if conversation and not is_id(conversation):
            raise conversation_not_found(conversation)
        wanted.setdefault("items", ())
        return ResponseRequest(
            sampling=sampling_of(draft),
            metadata=view.get("metadata", {}),
            tools=prompt.get("tools", ()),
            choice=prompt.get("choice", ToolChoice()),
            thinking=prompt.get("thinking", Thinking()),
            kwargs={**draft.template, **prompt.get("kwargs", {})},
            ignored=draft.ignored_in(cursor.problems),
            echo=view,
            **wanted,
        )


def conversation_not_found(conversation_id: str) -> SmgError:
    """Return the error for a conversation that does not exist, or is another tenant's."""
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"there is no conversation {quoted(conversation_id)}",
        where="conversation",
        code="conversation_not_found",
    )
