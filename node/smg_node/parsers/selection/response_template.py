r"""Response template: converts a checkpoint's own description of its answers into formats.

`response_template` in tokenizer_config.json, as the Transformers library reads it, names fields (thoughts, the
visible answer, calls), the words that open and close each, and how a call is spelled:

    {"fields": {"thinking": {"open": "<think>", "close": "</think>"},
                "content": {"close": "<|im_end|>"},
                "tool_calls": {"open_pattern": "<call (?P<name>\\w+)>", "close": "</call>", "content": "json",
                               "repeats": true,
                               "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}}}

Read are the forms that a stream can be read by: words and simple expressions as delimiters
(`streaming_regex`), calls whose arguments are JSON or tags, names that stand in the opener or in
the JSON. A description with anything else is refused as a whole, and other evidence decides: half
of it would be worse than none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_node.parsers.notations.json_calls import Shape, behind_name, is_name
from smg_node.parsers.notations.json_wrapped import Wrapped
from smg_node.parsers.notations.streaming_regex import (
    Anything,
    Step,
    UnreadableAnchorError,
    Word,
    follow,
    steps_of,
    words_of,
)
from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Parameters,
    closed,
    followers,
    parameter,
    taken,
)
from smg_node.parsers.reading.format import FormatRequest, ThoughtFormat, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import NAME_MAX, Machine, Reader
from smg_node.parsers.selection.chosen_formats import Described
from smg_node.parsers.selection.parser_labels import TEMPLATE

_THOUGHTS: Final = ("thinking", "reasoning_content", "reasoning")
_FIELDS: Final = (*_THOUGHTS, "content", "tool_calls")
_KEYS: Final = frozenset(
    (
        *("open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats"),
        *("join", "optional", "transform", "transform_each"),
    )
)
_END: Final = "eos"
_AT_START: Final = "(?:^|"
_WHOLE: Final = "{content}"
_JSON_ARGUMENTS: Final = frozenset({"allow_non_json"})


class UnreadableTemplateError(ValueError):
    """This description says something that answers cannot be read by here."""


def described(template: Mapping[str, Any]) -> Described:
    """Return the formats that a `response_template` describes; UnreadableTemplateError says why it
    cannot be read.
    """
    try:
        return _described(template)
    except UnreadableAnchorError as error:
        raise UnreadableTemplateError(str(error)) from error
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableTemplateError(f"it makes no sense: {error}") from error


def _described(template: Mapping[str, Any]) -> Described:
    if template.get("version", 1) != 1:
        raise UnreadableTemplateError(f"its version is {template['version']}")
    fields = template["fields"]
    for name, field in fields.items():
        if name not in _FIELDS:
            raise UnreadableTemplateError(f"there is no place for its field {name!r}")
        if strange := sorted(field.keys() - _KEYS):
            raise UnreadableTemplateError(f"its field {name!r} has {strange[0]!r}")
    content = fields.get("content", {})
    thinking = next((fields[name] for name in _THOUGHTS if name in fields), None)
    calls = fields.get("tool_calls")
    tools = None if calls is None else _tools(calls)
    return Described(_thought(thinking, content, tools), tools)


# ── Thoughts and the visible answer ──────────────────────────────────────────


def _thought(
    field: Mapping[str, Any] | None, content: Mapping[str, Any], tools: ToolFormat | None
) -> ThoughtFormat | None:
    _plain_text(content)
    frames = tuple(word for word in (*_openers(content), *_closers(content)) if word.strip())
    if field is None:
        return ThoughtFormat(TEMPLATE, frames=frames) if frames else None
    _plain_text(field)
    openers, closers = _openers(field), _closers(field)
    if not closers and not openers:
        closers = _openers(content)
    if not closers:
        raise UnreadableTemplateError("its thoughts never end")
    shared = {*closers} & {*_closers(content), *(tools.noise if tools is not None else ())}
    if shared and openers:
        raise UnreadableTemplateError(f"several of its fields end with {min(shared)!r}")
    at_start = not openers or str(field.get("open_pattern", "")).startswith(_AT_START)
    return ThoughtFormat(
        TEMPLATE,
        openers,
        closers,
        trim=bool(field.get("content_args", {}).get("strip", True)),
        interleaved=bool(field.get("repeats")),
        frames=tuple(word for word in frames if word not in closers),
        start="inside" if at_start else None,
    )


def _plain_text(field: Mapping[str, Any]) -> None:
    if field.get("content", "text") != "text" or "transform" in field:
        raise UnreadableTemplateError("its text is to be rewritten")


def _openers(field: Mapping[str, Any]) -> tuple[str, ...]:
    pattern = field.get("open_pattern")
    if isinstance(pattern, str) and pattern.startswith(_AT_START) and pattern.endswith(")"):
        # Opened by the beginning of the answer, or by a word.
        return words_of(pattern[len(_AT_START) : -1])
    return _words(field, "open")


def _closers(field: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(word for word in _words(field, "close") if word != _END)


def _words(field: Mapping[str, Any], side: str) -> tuple[str, ...]:
    pattern = field.get(f"{side}_pattern")
    if pattern is not None:
        return words_of(pattern)
    words = field.get(side, ())
    found = (words,) if isinstance(words, str) else tuple(words)
    if not all(isinstance(word, str) and word for word in found):
        raise UnreadableTemplateError(f"its {side!r} is no text")
    return found


# ── Calls ────────────────────────────────────────────────────────────────────


def _tools(field: Mapping[str, Any]) -> ToolFormat:
    closers = _closers(field)
    name, arguments = _spelled(field)
    kind = field.get("content", "text")
    if kind == "json" and field.get("content_args", {}).keys() <= _JSON_ARGUMENTS:
        if arguments == _WHOLE and name != _WHOLE:
            return _Named(_opened(field), closers, name[1:-1]).form()
        return Wrapped(_literal_openers(field), closers, _shape(name, arguments)).form(TEMPLATE)
    if kind == "xml-inline" and arguments == _WHOLE:
        return _Named(_opened(field), closers, name[1:-1], _tag(field["content_args"])).form()
    raise UnreadableTemplateError(f"its calls are {kind!r}")


def _spelled(field: Mapping[str, Any]) -> tuple[str, str]:
    """Return where a call's name and its arguments are; both `_WHOLE` where the JSON is the call as it is."""
    transform = field.get("transform", _WHOLE)
    if isinstance(transform, dict):
        transform = transform.get("function", transform)
    if transform == _WHOLE:
        return _WHOLE, _WHOLE
    said = transform["name"], transform["arguments"]
    for text in said:
        if not (isinstance(text, str) and text.startswith("{") and text.endswith("}")):
            raise UnreadableTemplateError("its calls are spelled in a way that is not understood")
    return said


def _shape(name: str, arguments: str) -> Shape:
    """Return how the JSON spells a call."""
    if name == _WHOLE:
        return Shape()
    paths = [text[1:-1].removeprefix("content.").split(".") for text in (name, arguments)]
    heads = [path[:-1] for path in paths]
    if heads[0] != heads[1] or len(heads[0]) > 1:
        raise UnreadableTemplateError(f"its calls are at {name} and {arguments}")
    return Shape((paths[0][-1],), (paths[1][-1],), tuple(heads[0]))


def _literal_openers(field: Mapping[str, Any]) -> tuple[str, ...]:
    openers = _words(field, "open")
    if not openers:
        raise UnreadableTemplateError("nothing opens its calls")
    return openers


def _opened(field: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps of what opens a call: a word, then what is to be found there."""
    steps = steps_of(field["open_pattern"])
    if not isinstance(steps[0], Word) or steps[0].optional or len(steps) < 2:
        raise UnreadableTemplateError("its calls begin with no word")
    return steps


@dataclass(frozen=True, slots=True)
class _Tag:
    """Markers of a parameter: before its value and after it.

    `laid_out`: white space around the value is not the value's.
    """

    before: tuple[Step, ...]
    closer: str
    key: str
    laid_out: bool


def _tag(arguments: Mapping[str, Any]) -> _Tag:
    pattern = arguments["tag_pattern"]
    steps = steps_of(pattern)
    at = next((at for at, step in enumerate(steps) if isinstance(step, Anything)), 0)
    before, after = steps[:at], steps[at + 1 :]
    if not before or not isinstance(before[0], Word) or len(after) != 1:
        raise UnreadableTemplateError(f"its parameters are {pattern!r}")
    closer = after[0]
    assert isinstance(closer, Word)
    if not any(getattr(step, "name", "") == "key" for step in before):
        raise UnreadableTemplateError(f"its parameters have no names: {pattern!r}")
    return _Tag(before, closer.text, "key", "\\s*" in pattern)


class _Named:
    """Calls named by their opener, and behind it the arguments, as JSON or as tags."""

    def __init__(
        self, opened: Sequence[Step], closers: tuple[str, ...], name: str, tag: _Tag | None = None
    ) -> None:
        if all(getattr(step, "name", "") != name for step in opened):
            raise UnreadableTemplateError("nothing that opens its calls names a function")
        first = opened[0]
        assert isinstance(first, Word)
        self._opener = first.text
        self._steps = tuple(opened[1:])
        self._name = name
        self._words = closers
        self._closers = Markers(closers)
        self._tag = tag
        if tag is not None:
            begin = tag.before[0]
            assert isinstance(begin, Word)
            self._begin = begin.text
            self._next = Markers((begin.text, *closers, self._opener))
            ends = (tag.closer, f"\n{tag.closer}") if tag.laid_out else (tag.closer,)
            self._ends = Markers(ends, also=ESCAPED)
            self._tag_ends = Markers((tag.closer,))
            self._followed = followers(begin.text, *closers, "<")

    def form(self) -> ToolFormat:
        """Return the format of these calls."""
        return ToolFormat(TEMPLATE, self.read, (self._opener,), noise=self._words)

    def read(self, reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
        """Read one call; see `ReadCall`."""
        reader.at += len(opener)
        found: dict[str, str] = {}
        if not (yield from follow(reader, self._steps, found)) or not is_name(found[self._name]):
            return False
        reader.out.call(found[self._name])
        reader.drop()
        if self._tag is None:
            yield from behind_name(reader)
            yield from closed(reader, self._closers)
        else:
            parameters = Parameters(reader.out, asked.schema(found[self._name]))
            yield from self._parameters(reader, parameters, self._tag)
        return True

    def _parameters(self, reader: Reader, parameters: Parameters, tag: _Tag) -> Machine[None]:
        left = ""

        def keep(text: str) -> None:
            nonlocal left
            left = (left + text)[-NAME_MAX:]

        while (yield from taken(reader, self._next, keep)) == self._begin:
            found: dict[str, str] = {}
            if not (yield from follow(reader, tag.before, found)) or not found[tag.key]:
                parameters.broken()
                reader.drop()
                return
            if tag.laid_out:
                yield from reader.have("\n")
            reader.drop()
            ended = yield from parameter(
                reader, parameters, found[tag.key], self._ends, self._followed
            )
            if not ended:
                return
            yield from reader.space()
            yield from reader.one_of(self._tag_ends)
            reader.drop()
        part = self._next.held(left, 0)
        if reader.ended and part and self._begin.startswith(left[-part:]):
            # It breaks off where another parameter may have begun.
            parameters.broken()
        else:
            parameters.end()
        yield from reader.one_of(self._closers)
        reader.drop()
