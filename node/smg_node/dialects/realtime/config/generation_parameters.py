"""Generation parameters of a session or of one answer: instructions, tools, limits, as a request of Responses has them.

Both are read at one place, a session's when it is updated, an answer's where it overrides any. The functions that take
them are those of Responses wherever the two APIs mean the same; here are those that know less: tools are functions, a choice
is a word or a function, an effort is one of five words.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import Thinking, ToolChoice
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.sampling import SAMPLING, sampling_of
from smg_node.dialects.openai.thinking import take_effort
from smg_node.dialects.openai.tool_choice import choice_object, choose, take_parallel, take_word
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import take_instructions, take_max_output
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.dialects.responses.request.tools import settle_tools, take_tools

INFINITE: Final = "inf"
_CHOICE: Final = "tool_choice"
_CHOICES: Final = ("none", "auto", "required")
_EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh")
_NO_VOICE: Final = "this model has no voice here: ask for ['text']"


def _take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take functions; any other tool is refused, because without it the answers would be others."""
    strange = False
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind is None or kind != "function":
            strange = True
            if kind is not None:
                why = f"tools of type {quoted(kind)} are not supported; 'function' is"
                tool.problem("type", why, "unsupported_tool")
    if not strange and type(cursor.values[key]) is list and not cursor.problems:
        take_tools(draft, cursor, key)


def _take_max_output(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the most tokens of an answer: a number, or `inf` for as many as fit."""
    value = cursor.values[key]
    if type(value) is str and value != INFINITE:
        cursor.problem(key, f"must be an integer or '{INFINITE}'; got {quoted(value)}")
    elif value != INFINITE:
        take_max_output(draft, cursor, key)


def _take_reasoning(draft: Draft, cursor: Cursor, key: str) -> None:
    reasoning = cursor.object(key)
    if reasoning is not None:
        reasoning.only(("effort",))
        if reasoning.word("effort", _EFFORTS) is not None:
            take_effort(draft, reasoning, "effort")


def _take_modalities(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take what an answer is made of: text, which an empty list is the same as."""
    values = cursor.array(key)
    for index, value in enumerate(cursor.elements(key, str, "a string", values or ()) or ()):
        if value == "audio":
            cursor.problem(key, _NO_VOICE)
        elif value != "text":
            cursor.problem(key, f"must be 'text' or 'audio'; got {quoted(value)}", index=index)


def _refuse_prompt(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.unsupported(key, "is not supported: this gateway stores no prompt templates")


PARAMETERS: Final[Mapping[str, Take]] = {
    "output_modalities": _take_modalities,
    "instructions": take_instructions,
    "tools": _take_tools,
    "parallel_tool_calls": take_parallel,
    "max_output_tokens": _take_max_output,
    "reasoning": _take_reasoning,
    "prompt": _refuse_prompt,
    "temperature": SAMPLING["temperature"],
    "top_p": SAMPLING["top_p"],
}
NAMES: Final = (*PARAMETERS, _CHOICE)
"""What changes how an answer is generated."""


def read_parameters(
    cursor: Cursor, options: ReaderOptions, *, model: str, routing_key: str
) -> ResponseRequest:
    """Return the request that these parameters make, without items; what is wrong with them is noted.

    The request is of no use where anything was.
    """
    draft = Draft(options)
    for key, take in PARAMETERS.items():
        if cursor.has(key):
            take(draft, cursor, key)
    settle_tools(draft, cursor)
    _settle_choice(draft, cursor)
    wanted: dict[str, Any] = draft.request
    return ResponseRequest(
        **wanted,
        model=model,
        items=(),
        sampling=sampling_of(draft),
        store=False,
        stream=True,
        tools=draft.prompt.get("tools", ()),
        choice=draft.prompt.get("choice", ToolChoice()),
        thinking=draft.prompt.get("thinking", Thinking()),
        routing_key=routing_key,
    )


def _settle_choice(draft: Draft, cursor: Cursor) -> None:
    """Take `tool_choice`, now that the tools are known."""
    if not cursor.has(_CHOICE) or cursor.problems:
        return
    names = [tool.name for tool in draft.prompt.get("tools", ())]
    value = cursor.values[_CHOICE]
    if isinstance(value, str):
        take_word(draft, cursor, _CHOICE, _CHOICES)
        if value == "required" and not names:
            cursor.problem(_CHOICE, "is only allowed when tools are given")
        return
    choice = choice_object(cursor, _CHOICE)
    if choice is None or choice.word("type", ("function",), required=True) is None:
        return
    choice.only(("type", "name"))
    name = choice.text("name", required=True)
    if name is not None and name not in names:
        choice.problem("name", f"there is no tool called {quoted(name)}")
    elif name is not None:
        choose(draft, _CHOICE, "named", name=name)


def unlike(value: Any, wanted: str) -> str:
    """Return the words for a value that is of another kind than the one `wanted`."""
    return f"must be {wanted}, not {kind_of(value)}"
