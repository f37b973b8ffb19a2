"""Template facts: message form that a template wants, found by rendering small conversations.

A template does not say whether it wants content as a string or as parts, call arguments as an object
or as text, or what it prints for an assistant that only called a tool. Of the published templates that
expect strings half raise and a quarter print a Python list when given parts. So each is rendered with
a few small conversations in both forms, and the form whose words come out unharmed is taken; the
syntax tree decides where that does not.

Found once per template; facts are keyed by the template, never by the model's name.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from smg_node.prompts.analysis.content_format import read_template
from smg_node.prompts.analysis.thinking_switch import QUESTION, find_switch
from smg_node.prompts.analysis.thinking_variables import Switch
from smg_node.prompts.jinja.chat_template import ChatTemplate, TemplateError, TemplateLimits
from smg_node.prompts.jinja.sandbox import Today

if TYPE_CHECKING:
    # Loaded with the first template that has words for media.
    from smg_node.core.generation.request import MediaKind
    from smg_node.prompts.analysis.media_parts import PicturePart

ContentForm: TypeAlias = Literal["string", "parts"]
ArgumentsForm: TypeAlias = Literal["object", "string"]
Nothing: TypeAlias = Literal["none", "string", "parts"]

REASONING_KEYS: Final = ("reasoning_content", "reasoning", "thinking")
"""What templates call a message's thoughts."""
REFERENCE: Final = "tool_reference"
"""Type of a part that stands for the definition of a tool."""
DEFERRED: Final = "defer_loading"
"""Key of a function that is not shown before it is referred to."""
BUILTIN: Final = "builtin"
"""Key of a function that stands for a built-in tool: its kind, for who has forms of their own for those."""
_PROBE_LIMITS: Final = TemplateLimits(output_max_bytes=1 << 20, render_max_s=0.1)
_PROBE_TIME: Final = Today(datetime(2024, 7, 26, 12, 0, tzinfo=UTC))
_WORD: Final = "smgprobe"
_KEY: Final = "smgkey"
_VALUE: Final = "smgvalue"
_ARGUMENTS: Final = f'{{"{_KEY}": "{_VALUE}"}}'
_CUT_ARGUMENTS: Final = _ARGUMENTS[:-2]
# Nine letters and digits: the only form that every template which checks it accepts.
_CALL_ID: Final = "abcde1234"
_TWO_NAMES: Final = ("smgfirstcall", "smgsecondcall")
_MEDIA: Final = ("image", "image_url", "video", "audio")
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "A tool.",
        "parameters": {"type": "object", "properties": {_KEY: {"type": "string"}}},
    },
}


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """Form in which one template wants its messages.

    `content` is the form of text-only content, `takes_parts` whether a list of parts comes out
    unharmed as well. `empty` stands for the content of an assistant that said nothing. Thoughts go under every
    one of `reasoning_keys`, or, with `thought_parts`, as a part of the content. With
    `prints_raw_arguments` the template prints call arguments that are text, though it wants an object.
    With `one_call` it prints no more than one call of a message, and refuses or forgets the others; without
    `knows_calls` it has no word for them. Without `later_systems` it refuses what the system says in the middle of a
    conversation, moves it or leaves it out. With `knows_builtins` it has forms of its own for built-in tools. With
    `knows_references` it shows a deferred tool where the result of a call refers to it, and nowhere else. With
    `takes_documents` it prints documents that are handed over beside the messages. `picture_part` is the type of a part
    for which it prints a picture's place in a user's turn, "" where it prints none, `clip_parts` are the kinds among
    videos and sound that it prints a place for; `tool_picture_part` and `tool_clip_parts` are those of a tool's result.
    """

    content: ContentForm = "string"
    takes_parts: bool = False
    tool_content: ContentForm = "string"
    empty: Nothing = "string"
    arguments: ArgumentsForm = "object"
    prints_raw_arguments: bool = False
    one_call: bool = False
    knows_calls: bool = True
    reasoning_keys: tuple[str, ...] = ("reasoning_content",)
    knows_developer: bool = False
    thought_parts: bool = False
    needs_descriptions: bool = False
    later_systems: bool = True
    knows_references: bool = False
    knows_builtins: bool = False
    takes_documents: bool = False
    picture_part: "PicturePart" = ""
    tool_picture_part: "PicturePart" = ""
    clip_parts: "tuple[MediaKind, ...]" = ()
    tool_clip_parts: "tuple[MediaKind, ...]" = ()
    switch: Switch = field(default_factory=Switch)

    def nothing(self) -> Any:
        """Return the content of an assistant that said nothing."""
        if self.empty == "none":
            return None
        return "" if self.empty == "string" else []


def find_facts(
    template: ChatTemplate, special_tokens: Mapping[str, str], *, thinking_key: str = ""
) -> TemplateFacts:
    """Return the facts about `template`; takes some forty small renders, at most 0.1 s each.

    `thinking_key` is what the operator says of its switch, see `find_switch`.
    """
    reading = read_template(template.tree())
    probe = _Probe(template, special_tokens)
    switch = find_switch(
        template.variables,
        reading.words,
        probe.asked,
        source=template.source,
        key=thinking_key,
    )
    string, parts = _either_form(probe, lambda content: [[_user(content)]])
    content = _form(string, parts, otherwise=reading.loops and not reading.asks)
    media = parts and not reading.words.isdisjoint(_MEDIA)
    return TemplateFacts(
        content=content,
        takes_parts=parts,
        tool_content=_form(*_either_form(probe, _with_result), otherwise=False),
        empty=_nothing(probe),
        arguments=_arguments(probe),
        prints_raw_arguments=_prints_raw_arguments(probe),
        one_call=_one_call(probe),
        knows_calls="tool_calls" in reading.words,
        reasoning_keys=(
            REASONING_KEYS[0],
            *(key for key in REASONING_KEYS[1:] if key in reading.words),
        ),
        knows_developer="developer" in reading.words,
        thought_parts="thinking" in reading.words and _prints_thought_parts(probe),
        needs_descriptions="description" in reading.words and _needs_descriptions(probe),
        later_systems=_takes_later_systems(probe, content),
        knows_references=DEFERRED in reading.words and _knows_references(probe),
        takes_documents="documents" in template.variables and _takes_documents(probe, content),
        **(_media_parts(probe, reading.words) if media else {}),
        switch=switch,
    )


class _Probe:
    """Renders small conversations; after one that ran into a limit it does not try again."""

    def __init__(self, template: ChatTemplate, special_tokens: Mapping[str, str]) -> None:
        self._template = template
        self._variables: dict[str, Any] = {
            **special_tokens,
            "documents": None,
            "add_generation_prompt": True,
            "continue_final_message": False,
            "strftime_now": _PROBE_TIME,
        }
        self._given_up = False

    def asked(self, variables: Mapping[str, Any]) -> str | None:
        """Return the text that the template prints for a question with these variables, or None if
        it fails.

        The question is asked behind a system message and without one, as some templates tell their model
        how to think only in one of the two.
        """
        question = _user(QUESTION)
        asked = ([{"role": "system", "content": "Hello"}, question], [question])
        texts = [self.text(messages, variables) for messages in asked]
        return "\n".join(text for text in texts if text is not None) or None

    def text(
        self, messages: list[dict[str, Any]], more: Mapping[str, Any] = MappingProxyType({})
    ) -> str | None:
        """Return the text that the template prints for `messages`, or None if it fails."""
        if self._given_up:
            return None
        has_tools = any("tool_calls" in message for message in messages)
        variables = {
            **self._variables,
            "messages": messages,
            "tools": [_TOOL] if has_tools else None,
            **more,
        }
        try:
            return self._template.render(variables, limits=_PROBE_LIMITS)
        except TemplateError as failure:
            self._given_up = failure.kind not in ("raised", "broken")
            return None


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _caller(content: Any, arguments: Any) -> dict[str, Any]:
    call = _call(_CALL_ID, "probe_tool", arguments)
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def _conversations(
    *, said: Any = "", arguments: Any = None, result: Any = "fine"
) -> Iterator[list[dict[str, Any]]]:
    """Yield conversations around one call; templates print a call here that they drop there."""
    given = {_KEY: _VALUE} if arguments is None else arguments
    call = [_user("Hello"), _caller(said, given)]
    answered = [*call, {"role": "tool", "tool_call_id": _CALL_ID, "content": result}]
    yield answered
    yield [*answered, {"role": "assistant", "content": "Done."}, _user("And now?")]
    yield call


def _with_result(content: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield conversations with `content` as the result of a call, its arguments in either form."""
    yield from _conversations(result=content)
    yield from _conversations(result=content, arguments=_ARGUMENTS)


def _either_form(probe: _Probe, conversations: Callable[[Any], Any]) -> tuple[bool, bool]:
    """Return whether content as a string, and as parts, comes out as its own text."""
    part = _text_part(_WORD)
    return (
        any(_unharmed(probe.text(each)) for each in conversations(_WORD)),
        any(_unharmed(probe.text(each)) for each in conversations([part])),
    )


def _unharmed(text: str | None) -> bool:
    """Whether the probe's word was printed, and not inside a printed list."""
    return (
        text is not None
        and _WORD in text
        and f"'{_WORD}'}}" not in text
        and f'"{_WORD}"}}' not in text
    )


def _form(string: bool, parts: bool, *, otherwise: bool) -> ContentForm:
    if string or parts:
        return "string" if string else "parts"
    return "parts" if otherwise else "string"


def _nothing(probe: _Probe) -> Nothing:
    """Return what an assistant without text is given: None if that prints no "None" or "null"."""
    for arguments in (None, _ARGUMENTS):
        kinds: tuple[tuple[Nothing, Any], ...] = (("none", None), ("string", ""), ("parts", []))
        for kind, said in kinds:
            texts = [probe.text(each) for each in _conversations(said=said, arguments=arguments)]
            plain = [probe.text(each) for each in _conversations(said=_WORD, arguments=arguments)]
            if any(text is not None for text in texts) and all(
                _nones(text) <= _nones(other) for text, other in zip(texts, plain, strict=True)
            ):
                return kind
    return "string"


def _prints_thought_parts(probe: _Probe) -> bool:
    """Whether thoughts come out as a part of the content, and under no key of the message."""
    thought = {"type": "thinking", "thinking": _WORD}
    answer = {"type": "text", "text": "Done."}

    def printed(message: dict[str, Any]) -> bool:
        return _unharmed(probe.text([_user("Hello"), {"role": "assistant", **message}]))

    keys = dict.fromkeys(REASONING_KEYS, _WORD)
    return printed({"content": [thought, answer]}) and not printed({"content": "Done.", **keys})


def _needs_descriptions(probe: _Probe) -> bool:
    """Whether a function without a description breaks the template, and one with an empty one does not."""
    function = _TOOL["function"]
    bare = {key: value for key, value in function.items() if key != "description"}

    def fails(function: dict[str, Any]) -> bool:
        tools = [{"type": "function", "function": function}]
        return probe.text([_user("Hello")], {"tools": tools}) is None

    return fails(bare) and not fails({**bare, "description": ""})


def _takes_later_systems(probe: _Probe, form: ContentForm) -> bool:
    """Whether what the system says in the middle of a conversation is printed there."""

    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text if form == "string" else [_text_part(text)]}

    first, second = _TWO_NAMES
    messages = [said("user", first), said("system", _WORD), said("assistant", second)]
    text = probe.text([*messages, said("user", "And now?")])
    return text is not None and text.find(first) < text.find(_WORD) < text.find(second)


def _knows_references(probe: _Probe) -> bool:
    """Whether a deferred tool is shown where the result of a call refers to it, and nowhere else."""
    found = {
        "name": _TWO_NAMES[0],
        "description": _WORD,
        "parameters": _TOOL["function"]["parameters"],
    }
    tools = {"tools": [_TOOL, {"type": "function", "function": {**found, DEFERRED: True}}]}
    reference = [{"type": REFERENCE, "name": _TWO_NAMES[0]}]

    def shown(result: Any) -> list[bool]:
        texts = [probe.text(each, tools) for each in _conversations(result=result)]
        return [_WORD in text for text in texts[:2] if text is not None]

    without = shown("fine")
    return bool(without) and not any(without) and shown(reference) == [True] * len(without)


def _takes_documents(probe: _Probe, form: ContentForm) -> bool:
    """Whether the title and the text of a document come out, and the question behind it."""
    question = _TWO_NAMES[1]
    messages = [_user(question if form == "string" else [_text_part(question)])]
    document = {"title": _TWO_NAMES[0], "text": _WORD}
    text = probe.text(messages, {"documents": [document]})
    return text is not None and all(said in text for said in (_TWO_NAMES[0], _WORD, question))


def _media_parts(probe: _Probe, words: frozenset[str]) -> dict[str, Any]:
    """Return the facts about pictures, videos and sound of a template that has words for some of them."""
    from smg_node.prompts.analysis.media_parts import clip_parts, picture_part

    def said(content: Any) -> list[str | None]:
        return [_whole(probe.text([_user(content)]))]

    def returned(content: Any) -> list[str | None]:
        return [_whole(probe.text(each)) for each in _with_result(content)]

    told = _text_part(_WORD)
    return {
        "picture_part": picture_part(words, told, said),
        "tool_picture_part": picture_part(words, told, returned),
        "clip_parts": clip_parts(words, told, said),
        "tool_clip_parts": clip_parts(words, told, returned),
    }


def _whole(text: str | None) -> str | None:
    return text if _unharmed(text) else None


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _nones(text: str | None) -> int:
    return 0 if text is None else text.count("None") + text.count("null")


def _arguments(probe: _Probe) -> ArgumentsForm:
    for each in _conversations():
        text = probe.text(each)
        if text is not None and _KEY in text and _VALUE in text and f"'{_KEY}'" not in text:
            return "object"
    for each in _conversations(arguments=_ARGUMENTS):
        text = probe.text(each)
        if text is not None and _ARGUMENTS in text:
            return "string"
    return "object"


def _prints_raw_arguments(probe: _Probe) -> bool:
    """Whether arguments that are the beginning of an object come out as they are, or as a JSON string."""
    forms = (_CUT_ARGUMENTS, json.dumps(_CUT_ARGUMENTS))
    texts = [probe.text(each) for each in _conversations(arguments=_CUT_ARGUMENTS)]
    return any(text is not None and any(form in text for form in forms) for text in texts)


def _one_call(probe: _Probe) -> bool:
    """Whether two calls come out only as two messages, each followed by its result."""

    def both(messages: list[dict[str, Any]]) -> bool:
        text = probe.text(messages)
        return text is not None and all(name in text for name in _TWO_NAMES)

    for arguments in ({_KEY: _VALUE}, _ARGUMENTS):
        calls = [_call(f"abcde000{at}", name, arguments) for at, name in enumerate(_TWO_NAMES)]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "fine"} for call in calls
        ]
        callers = [{"role": "assistant", "content": "", "tool_calls": [call]} for call in calls]
        together = {"role": "assistant", "content": "", "tool_calls": calls}
        if both([_user("Hello"), together, *results]):
            return False
        if both([_user("Hello"), callers[0], results[0], callers[1], results[1]]):
            return True
    return False
