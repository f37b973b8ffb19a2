"""Output parameters: `text`, `reasoning`, `include`, and the number of log probabilities."""

from typing import Final

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.constraint import take_description, take_json_format, take_schema
from smg_node.dialects.openai.request_draft import Draft, Take, take_all
from smg_node.dialects.openai.template_variables import take_verbosity
from smg_node.dialects.openai.thinking import take_effort

LOGPROBS: Final = "message.output_text.logprobs"
INCLUDABLE: Final = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    LOGPROBS,
)
"""What may be asked for. Only log probabilities and sealed thoughts are left out where nobody does: everything else that
an item holds is always shown, image URLs too, so that what is read back can be sent again as it is."""
_SUMMARIES: Final = ("auto", "concise", "detailed")
_CONTEXTS: Final = ("auto", "current_turn", "all_turns")
_TOP_LOGPROBS_MAX: Final = 20
# Keys that one of the two public schemas demands of a format.
_UNSAID: Final = {"description": None, "strict": False}
_FORMAT_KEYS: Final = ("type", "name", "description", "strict", "schema")


def take_text(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `text`: format and verbosity of the answer."""
    text = cursor.object(key)
    if text is None:
        return
    take_all(draft, text, {"format": take_format, "verbosity": take_verbosity})
    if text.has("verbosity"):
        draft.view["verbosity"] = text.values["verbosity"]


def take_format(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `text.format`; the schema stands beside its name, not inside."""
    wanted = cursor.object(key)
    if wanted is None:
        return
    kind = wanted.word("type", ("text", "json_object", "json_schema"), required=True)
    if kind == "text":
        wanted.only(("type",))
    elif kind == "json_object":
        take_json_format(draft, wanted, cursor.path(key))
    if kind != "json_schema":
        draft.view["format"] = wanted.values
        return
    wanted.only(_FORMAT_KEYS)
    said = {key: value for key, value in wanted.values.items() if value is not None}
    draft.view["format"] = {**_UNSAID, **said}
    wanted.text("name", required=True, characters_min=1, characters_max=64)
    take_description(wanted)
    strict = wanted.flag("strict") or False
    if wanted.raw("schema", required=True) is not None:
        take_schema(draft, wanted, "schema", strict=strict)


def take_reasoning(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `reasoning`: its effort, and how much earlier reasoning is shown again."""
    reasoning = cursor.object(key)
    if reasoning is None:
        return
    take_all(draft, reasoning, _REASONING)
    draft.view["reasoning"] = {
        "effort": reasoning.values.get("effort"),
        "summary": reasoning.values.get("summary"),
    }


def _take_word_effort(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key) is not None:
        take_effort(draft, cursor, key)


def _take_summary(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the kind of reasoning summary: none is made here, so the client is told that it has no effect."""
    if cursor.word(key, _SUMMARIES) is not None:
        draft.ignore(cursor.path(key))


def _take_context(draft: Draft, cursor: Cursor, key: str) -> None:
    context = cursor.word(key, _CONTEXTS)
    if context is not None and context != "auto":
        draft.request["reasoning_context"] = context


def _take_mode(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key, characters_max=64) is not None:
        draft.ignore(cursor.path(key))


_REASONING: Final[dict[str, Take]] = {
    "effort": _take_word_effort,
    "summary": _take_summary,
    "generate_summary": _take_summary,
    "context": _take_context,
    "mode": _take_mode,
}


def read_include(cursor: Cursor, key: str = "include") -> tuple[str, ...]:
    """Return the values of `include`, each once; an unknown name is noted at its place."""
    values = cursor.array(key, at_most=64)
    names = values and cursor.elements(key, str, "a string", values)
    for index, name in enumerate(names or ()):
        if name not in INCLUDABLE:
            cursor.problem(key, f"must be one of {', '.join(INCLUDABLE)}", index=index)
    return tuple(dict.fromkeys(names or ()))


def take_include(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `include`."""
    include = read_include(cursor, key)
    draft.request["include"] = include
    if LOGPROBS in include:
        draft.sampling.setdefault("logprobs", 0)


def take_top_logprobs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `top_logprobs`; more than none must also be included."""
    value = cursor.integer(key, low=0, high=_TOP_LOGPROBS_MAX)
    draft.view["top_logprobs"] = value or 0
    included = cursor.values.get("include")
    if not value:
        return
    if type(included) is list and LOGPROBS in included:
        draft.draw("logprobs", value, key)
    else:
        cursor.problem(key, f"is only allowed when include has {LOGPROBS!r}")


FORM: Final[dict[str, Take]] = {
    "text": take_text,
    "reasoning": take_reasoning,
    "include": take_include,
    "top_logprobs": take_top_logprobs,
}
