"""Recognition: decides which formats a model prints, from all evidence about it.

The evidence, strongest first: what the operator says; what the worker calls it; the checkpoint's own
description; the marks in its chat template and its tokens; the kind of model; its name. Thoughts and calls are
decided separately, each by the first evidence that says something of it, except that a format which is both at
once cannot stand beside another one.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from smg_node.parsers.reading.format import ThoughtFormat, ToolFormat
from smg_node.parsers.selection.chosen_formats import Chosen, Described, Evidence, Source
from smg_node.parsers.selection.model_names import formats_of_name
from smg_node.parsers.selection.model_types import KINDS, Kind, kind_of
from smg_node.parsers.selection.parser_labels import (
    PLAIN,
    TEMPLATE,
    reasoning_named,
    reasoning_of_label,
    tools_named,
    tools_of_label,
)
from smg_node.parsers.selection.reasoning_variants import options_of, suffix_of
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from smg_node.parsers.selection.response_template import UnreadableTemplateError, described
from smg_node.parsers.selection.template_marks import Marked, read_marks


@dataclass(frozen=True, slots=True)
class Clues:
    """Facts known of a model.

    `names` are what it is called, the most telling first. `template` is the text of its chat templates,
    `added_tokens` the texts of the tokens beside its vocabulary, `config` its config.json. `reasoning_parser`
    and `tool_parser` are the operator's words, `reasoning_label` and `tool_label` the worker's.
    `response_template` is the checkpoint's own description of its answers, None where it has none.
    """

    names: tuple[str, ...] = ()
    template: str = ""
    added_tokens: Collection[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict)
    reasoning_parser: str = ""
    tool_parser: str = ""
    reasoning_label: str = ""
    tool_label: str = ""
    response_template: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """Formats by one evidence; "" where it says nothing."""

    source: Source
    reasoning: str = ""
    why_reasoning: str = ""
    tools: str = ""
    why_tools: str = ""
    form: str = ""


_WIDER: Final = ("ernie45", "granite", "hunyuan_a13b")
"""Formats that have `<think>` in them, and further marks of their own."""
_NOTHING: Final = _Said("nothing", PLAIN, "", PLAIN, "")


def recognise(clues: Clues) -> Chosen:
    """Return the formats of a model; NOT_FOUND where its operator names an unknown one."""
    marked = read_marks(clues.template, clues.added_tokens)
    kind = kind_of(clues.config)
    by_name = _name(clues)
    by_marks = _template(marked, KINDS.get(kind, Kind()), by_name)
    brought, trouble = _brought(clues)
    said = [
        _operator(clues, brought),
        _worker(clues, brought),
        _described(brought, by_marks),
        by_marks,
        _kind(kind, marked),
        by_name,
        _NOTHING,
    ]
    chosen = _decided(said)
    if chosen.reasoning == "think":
        options = options_of(kind, clues.names, clues.template, chosen.tools)
        chosen = replace(chosen, options=options)
    elif chosen.reasoning == "hy_v3":
        chosen = replace(chosen, options=suffix_of(clues.added_tokens))
    if clues.reasoning_parser:
        _, said_options = reasoning_named(clues.reasoning_parser)
        chosen = chosen if said_options is None else replace(chosen, options=said_options)
    return replace(
        chosen,
        warnings=(*trouble, *_warnings(said[1], by_marks)),
        described=brought if TEMPLATE in (chosen.reasoning, chosen.tools) else None,
    )


def _decided(said: list[_Said]) -> Chosen:
    """Return what the first evidence says of each; of two that cannot go together the stronger stays."""
    thoughts = next(at for at, each in enumerate(said) if each.reasoning)
    calls = next(at for at, each in enumerate(said) if each.tools)
    joint = known_joint()
    if said[thoughts].reasoning != said[calls].tools:
        # A format that is both takes the other's place where it is the better known of the two.
        if said[thoughts].reasoning in joint and thoughts <= calls:
            return _chosen(said[thoughts], said[thoughts], tools=said[thoughts].reasoning)
        if said[calls].tools in joint and calls <= thoughts:
            return _chosen(said[calls], said[calls], reasoning=said[calls].tools)
        if said[thoughts].reasoning in joint:
            thoughts = next(
                at for at, each in enumerate(said) if each.reasoning and each.reasoning not in joint
            )
        if said[calls].tools in joint:
            calls = next(
                at for at, each in enumerate(said) if each.tools and each.tools not in joint
            )
    return _chosen(said[thoughts], said[calls])


def _chosen(thoughts: _Said, calls: _Said, *, reasoning: str = "", tools: str = "") -> Chosen:
    return Chosen(
        reasoning or thoughts.reasoning,
        tools or calls.tools,
        form=calls.form,
        why_reasoning=Evidence(
            thoughts.source, thoughts.why_tools if reasoning else thoughts.why_reasoning
        ),
        why_tools=Evidence(calls.source, calls.why_reasoning if tools else calls.why_tools),
    )


def _brought(clues: Clues) -> tuple[Described, list[str]]:
    """Return what the checkpoint describes, and what stands against its description."""
    wanted = TEMPLATE in _named(clues)
    if clues.response_template is None:
        missing = "its files hold no response_template, so that name says nothing"
        return Described(), [missing] if wanted else []
    try:
        return described(clues.response_template), []
    except UnreadableTemplateError as error:
        return Described(), [f"its response_template cannot be read here: {error}"]


def _named(clues: Clues) -> tuple[str, ...]:
    said = (clues.reasoning_parser.partition("+")[0], clues.reasoning_label)
    called = (clues.tool_parser, clues.tool_label)
    return (*map(reasoning_of_label, said), *map(tools_of_label, called))


def _described(brought: Described, marks: _Said) -> _Said:
    """Return what the checkpoint's description says.

    Where it begins thoughts or calls with the words of a format that is known here and that the marks show,
    it is that format: one that was made for a family says more of an answer, and says it sooner.
    """
    thought, tools = brought.thought, brought.tools
    reasoning = called = ""
    if thought is not None:
        known = known_thoughts()
        alike = marks.reasoning in known and known.get(marks.reasoning).openers == thought.openers
        reasoning = marks.reasoning if alike and thought.openers else TEMPLATE
    if tools is not None:
        alike = marks.tools in known_tools() and bool(
            {*known_tools().get(marks.tools).openers} & {*tools.openers}
        )
        called = marks.tools if alike else TEMPLATE
    return _Said(
        "response template",
        reasoning,
        _opened_by(thought),
        called,
        _opened_by(tools),
        marks.form if called == marks.tools else "",
    )


def _opened_by(form: ThoughtFormat | ToolFormat | None) -> str:
    words = form.openers if form is not None else ()
    return f"it opens with {', '.join(map(repr, words))}" if words else "it says where they end"


def _operator(clues: Clues, brought: Described) -> _Said:
    reasoning = tools = ""
    if clues.reasoning_parser:
        reasoning, _ = reasoning_named(clues.reasoning_parser)
    if clues.tool_parser:
        tools = tools_named(clues.tool_parser)
    return _there(
        brought,
        _Said(
            "settings",
            reasoning,
            f"reasoning_parser: {clues.reasoning_parser}",
            tools,
            f"tool_parser: {clues.tool_parser}",
        ),
    )


def _worker(clues: Clues, brought: Described) -> _Said:
    return _there(
        brought,
        _Said(
            "worker",
            reasoning_of_label(clues.reasoning_label),
            f"reasoning_parser: {clues.reasoning_label}",
            tools_of_label(clues.tool_label),
            f"tool_call_parser: {clues.tool_label}",
        ),
    )


def _there(brought: Described, said: _Said) -> _Said:
    """Return what was said, without a description that the checkpoint does not have."""
    if said.reasoning == TEMPLATE and brought.thought is None:
        said = replace(said, reasoning="")
    if said.tools == TEMPLATE and brought.tools is None:
        said = replace(said, tools="")
    return said


def _template(marked: Marked, kind: Kind, named: _Said) -> _Said:
    reasoning, why = marked.reasoning, marked.why_reasoning
    if marked.only_so:
        # Some families put more around thoughts and answers than the marks that were seen.
        reasoning = kind.thinking or (named.reasoning if named.reasoning in _WIDER else reasoning)
    return _Said("chat template", reasoning, why, marked.tools, marked.why_tools, marked.form)


def _kind(kind: str, marked: Marked) -> _Said:
    known = KINDS.get(kind, Kind())
    reasoning = known.thinking if marked.thinks and known.thinking else known.reasoning
    why = f"model_type: {kind}"
    return _Said("configuration", reasoning, why, known.tools, why)


def _name(clues: Clues) -> _Said:
    for name in clues.names:
        reasoning, tools, pattern = formats_of_name(name)
        if reasoning:
            why = f"{name!r} looks like {pattern!r}"
            return _Said("name", reasoning, why, tools, why)
    return _Said("name")


def _warnings(worker: _Said, template: _Said) -> Iterator[str]:
    for what, label, named, seen, why in (
        (
            "thoughts",
            worker.why_reasoning,
            worker.reasoning,
            template.reasoning,
            template.why_reasoning,
        ),
        ("calls", worker.why_tools, worker.tools, template.tools, template.why_tools),
    ):
        if named and seen and named != seen:
            yield (
                f"the worker says {label!r}, so its {what} are read as {named}, but {why} looks like {seen}"
            )
