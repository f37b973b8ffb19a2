"""Structural tags: descriptions of reasoning, calls and answers for an engine's grammar, in the
model's own format. Pure.

Engines take them in one of two forms. The newer one is a tree of formats: a sequence may begin with a thought,
and "at least one" call can be demanded. The older one is a list of begin, schema and end: free text until a
trigger is printed, and nothing can be demanded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.request import Constraint, Tool
from smg_node.parsers.reading.format import Tag

Format: TypeAlias = dict[str, Any]
TagForm: TypeAlias = Literal["formats", "structures", "none"]

NAME: Final = "NAME"
INDEX: Final = "INDEX"
"""In a tag's begin: any number."""
ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Grammars:
    """Abilities of one engine's grammars.

    `kinds` are those of constraints it takes. `tags` is the form of its structural tags. It `waits` where it
    holds a grammar back by itself until a thought that the prompt has opened is over; it `can_wait` where it
    does so when asked to.
    """

    kinds: frozenset[str] = frozenset()
    tags: TagForm = "none"
    waits: bool = False
    can_wait: bool = False


# ── The newer form ───────────────────────────────────────────────────────────


def tag(begin: str, content: Format, end: str) -> Format:
    """Return begin, content and end as one."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def schema_format(schema: Mapping[str, Any] | bool, style: str = "json") -> Format:
    """Return what matches a schema, printed as JSON or in another `style`."""
    found: Format = {"type": "json_schema", "json_schema": schema}
    if style != "json":
        found["style"] = style
    return found


def either(formats: Sequence[Format]) -> Format:
    """Return what matches one of the formats."""
    return formats[0] if len(formats) == 1 else {"type": "or", "elements": list(formats)}


def calls_format(
    tags: Sequence[Tag], tools: Sequence[Tool], *, loose: bool, at_least_one: bool, single: bool
) -> Format:
    """Return free text with calls in it, which are well-formed as soon as a trigger was printed.

    With `at_least_one` it begins with a call. A `single` one ends it. Where arguments are `loose`, only
    those of strict tools are held to their schemas.
    """
    return {
        "type": "triggered_tags",
        "triggers": triggers_of(tags),
        "tags": call_tags(tags, tools, loose=loose),
        "at_least_one": at_least_one,
        "stop_after_first": single,
    }


def nothing_but_calls(
    tags: Sequence[Tag], tools: Sequence[Tool], *, loose: bool, single: bool
) -> Format:
    """Return one call or more and no text; unlike free text it may stand beside formats that end."""
    return {
        "type": "tags_with_separator",
        "tags": call_tags(tags, tools, loose=loose),
        "separator": "\n" if any("\n" in each.begin for each in tags) else "",
        "at_least_one": True,
        "stop_after_first": single,
    }


def call_tags(tags: Sequence[Tag], tools: Sequence[Tool], *, loose: bool) -> list[Format]:
    """Return every way to print a call of each tool."""
    return [_call(each, tool, loose=loose) for tool in tools for each in tags]


def _call(spelled: Tag, tool: Tool, *, loose: bool) -> Format:
    # Other styles than JSON have no way to print what is not declared.
    loose = loose and spelled.style == "json"
    content = schema_format(parameters_of(tool, loose=loose), spelled.style)
    begin, index, behind = spelled.begin.replace(NAME, tool.name).partition(INDEX)
    if index:
        number: Format = {"type": "regex", "pattern": "[0-9]+"}
        middle = [{"type": "const_string", "value": behind}] if behind else []
        content = {"type": "sequence", "elements": [number, *middle, content]}
    return tag(begin, content, spelled.end)


def parameters_of(tool: Tool, *, loose: bool = False) -> Mapping[str, Any] | bool:
    """Return the schema of a tool's parameters; True, which is anything, for a tool that need not be held to it."""
    if loose and not tool.strict:
        return True
    return NO_PARAMETERS if tool.parameters is None else tool.parameters


def triggers_of(tags: Sequence[Tag]) -> list[str]:
    """Return what begins the tags: each is begun by exactly one."""
    words = list(dict.fromkeys(word for each in tags for word in each.triggers))
    return [
        word
        for word in words
        if not any(word != other and word.startswith(other) for other in words)
    ]


def after_thought(thoughts: Sequence[tuple[str, str]], rest: Format, *, sure: bool) -> Format:
    """Return a thought and then `rest`; where it is not `sure` there may be none.

    `thoughts` are the pairs of what a thought may stand between.
    """
    if not thoughts:
        return rest
    free: Format = {"type": "any_text"}
    first: Format = {
        "type": "tags_with_separator",
        "tags": [tag(begin, free, end) for begin, end in thoughts],
        "separator": "",
        "at_least_one": sure,
        "stop_after_first": True,
    }
    if sure and len(thoughts) == 1:
        first = tag(thoughts[0][0], free, thoughts[0][1])
    return {"type": "sequence", "elements": [first, rest]}


def answer_format(constraint: Constraint) -> Format:
    """Return a client's own constraint as a part of a larger one."""
    value = constraint.value
    match constraint.kind:
        case "json_object":
            return schema_format(ANY_OBJECT)
        case "json_schema":
            return schema_format(msgspec.json.decode(value))
        case "regex":
            return {"type": "regex", "pattern": value}
        case "ebnf":
            return {"type": "grammar", "grammar": value}
        case "choice":
            texts = msgspec.json.decode(value, type=list[str])
            return either([{"type": "const_string", "value": text} for text in texts])
        case "structural_tag":
            raise AssertionError("a client's own tags say everything themselves")


def tags_text(form: Format) -> str:
    """Return a structural tag of the newer form as text."""
    return msgspec.json.encode({"type": "structural_tag", "format": form}).decode()


# ── The older form ───────────────────────────────────────────────────────────


def structures_text(tags: Sequence[Tag], tools: Sequence[Tool], *, loose: bool) -> str | None:
    """Return free text with calls in it in the older form; None where that cannot spell the
    tags.
    """
    if any(each.style != "json" or INDEX in each.begin for each in tags):
        return None
    structures = [
        {
            "begin": each.begin.replace(NAME, tool.name),
            "schema": parameters_of(tool, loose=loose),
            "end": each.end,
        }
        for tool in tools
        for each in tags
    ]
    said = {"type": "structural_tag", "structures": structures, "triggers": triggers_of(tags)}
    return msgspec.json.encode(said).decode()
