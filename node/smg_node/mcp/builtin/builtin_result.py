"""Result of a built-in tool: what a server answered, as models and APIs are shown it. Pure.

Of a search models are shown `[n] title address` and the text of each thing found, so that they can cite it by its
number, and APIs the sources behind the numbers. A result in no known form is passed on as a text and has no sources;
unless only some domains may be shown, which nobody can see to then.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.tool_serving import BuiltinKind, RunError, RunResult, Source
from smg_node.mcp.builtin.domains import DomainRule, domain_rule
from smg_node.mcp.builtin.fetched_page import read_page
from smg_node.mcp.builtin.found_sources import answer_in, sources_in
from smg_node.mcp.builtin.labelled_sources import labelled_sources
from smg_node.mcp.builtin.run_outputs import code_outputs, pictures_in, size_of
from smg_node.mcp.builtin.server_arguments import action_of
from smg_node.mcp.failures import TOOL_ERROR_TYPE, Failure, prompt_text, unreadable
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.tools.content import cut_text, text_of
from smg_node.mcp.tools.tool_result import CallResult

OUTPUT_BYTES_MAX: Final = McpLimits().output_bytes_max
_CONTEXT_BYTES: Final[Mapping[str, int]] = {"low": 8_192, "medium": 32_768, "high": 131_072}
"""What `search_context_size` means here; without one, and for files, the limit of any result counts."""
_FILES_MAX: Final = 20
"""As many passages as Responses finds unless `max_num_results` says otherwise."""
_ANSWER_BYTES_MAX: Final = 4_096
_LEAST_TEXT: Final = 100
"""Bytes of a text below which it is left out rather than cut."""


def read_builtin(
    kind: BuiltinKind,
    settings: Mapping[str, Any],
    arguments: str,
    result: CallResult | Failure,
    *,
    first: int = 1,
    bytes_max: int = OUTPUT_BYTES_MAX,
) -> RunResult:
    """Return what came of a run; `arguments` are the model's own.

    Sources are numbered from `first`: one more than the sources that the answer has had so far.
    """
    action = action_of(kind, arguments)
    if isinstance(result, Failure):
        return _failure(result, action)
    if kind == "code_interpreter":
        return _of_code(result, action, bytes_max)
    if result.is_error:
        return _failed(result, action, bytes_max)
    if kind == "image_generation":
        return _of_pictures(result, action)
    if kind == "web_fetch":
        page = read_page(settings, action, result, bytes_max=bytes_max)
        return _failure(page, action) if isinstance(page, Failure) else page
    if kind in ("web_search", "file_search"):
        return _of_search(kind, settings, action, result, first, bytes_max)
    return RunResult(text_of(result, bytes_max=bytes_max), content=result.content, action=action)


def numbered(sources: Sequence[Source], *, first: int = 1, bytes_max: int) -> str:
    """Return sources as a model is shown them, in at most about so many bytes: long texts are cut before short ones."""
    heads = [_head(number, source) for number, source in enumerate(sources, first)]
    left = bytes_max - sum(len(head.encode("utf-8", "replace")) + 2 for head in heads)
    sizes = [len(source.text.encode("utf-8", "replace")) + 1 for source in sources]
    most = _share(sizes, left)
    shown: list[str] = []
    for head, source, size in zip(heads, sources, sizes, strict=True):
        text = source.text if size <= most else _cut(source.text, most)
        shown.append(f"{head}\n{text}" if text else head)
    return "\n\n".join(shown)


def _of_search(
    kind: BuiltinKind,
    settings: Mapping[str, Any],
    action: Mapping[str, Any],
    result: CallResult,
    first: int,
    bytes_max: int,
) -> RunResult:
    rule = domain_rule(settings) if kind == "web_search" else DomainRule()
    found = sources_in(result, kind)
    if found is None and rule == DomainRule():
        found = labelled_sources(text_of(result, bytes_max=bytes_max)) or None
    if found is None:
        if rule != DomainRule():
            why = "the results are in no form that shows their domains, and not all may be shown"
            return _failure(unreadable(why), action)
        return RunResult(
            text_of(result, bytes_max=bytes_max), content=result.content, action=action
        )
    fitting = [source for source in found if _fits(source, kind, settings, rule)]
    kept = fitting[: _most(settings)] if kind == "file_search" else fitting
    size = settings.get("search_context_size")
    room = min(
        bytes_max, _CONTEXT_BYTES.get(size, bytes_max) if isinstance(size, str) else bytes_max
    )
    parts: list[str] = []
    # An answer in words may rest on what must not be shown.
    if rule == DomainRule() and (answer := answer_in(result)):
        parts.append(cut_text(answer, min(_ANSWER_BYTES_MAX, room // 2)))
        room -= len(parts[0].encode("utf-8", "replace"))
    shown = _that_have_room(kept, first, room)
    parts.append(numbered(shown, first=first, bytes_max=room) if shown else "Nothing was found.")
    if dropped := len(found) - len(fitting):
        parts.append(f"[{dropped} left out: not what was asked for]")
    return RunResult("\n\n".join(parts), action=action, sources=tuple(shown))


def _fits(source: Source, kind: BuiltinKind, settings: Mapping[str, Any], rule: DomainRule) -> bool:
    if kind == "web_search":
        return rule.allows(source.url)
    ranking = settings.get("ranking_options")
    least = ranking.get("score_threshold") if isinstance(ranking, dict) else None
    if not isinstance(least, int | float) or source.score is None:
        return True
    return source.score >= least


def _most(settings: Mapping[str, Any]) -> int:
    most = settings.get("max_num_results")
    return most if isinstance(most, int) and most > 0 else _FILES_MAX


def _of_code(result: CallResult, action: Mapping[str, Any], bytes_max: int) -> RunResult:
    outputs = code_outputs(result, bytes_max=bytes_max)
    shown = [
        output["logs"] if output["type"] == "logs" else f"[{size_of(output)}]" for output in outputs
    ]
    error = RunError(TOOL_ERROR_TYPE, content=result.content) if result.is_error else None
    text = "\n".join(shown) or "Nothing was printed."
    return RunResult(text, error, result.content, action, outputs=outputs)


def _of_pictures(result: CallResult, action: Mapping[str, Any]) -> RunResult:
    pictures = pictures_in(result)
    if not pictures:
        return _failure(unreadable("the server's answer has no picture"), action)
    held = [picture for picture in pictures if str(picture["url"]).startswith("data:")]
    sizes = ", ".join(f"[{size_of(picture)}]" for picture in held or pictures)
    # An address is no picture yet, and clients are shown pictures only.
    how = "and shown to the user" if held else "and not shown yet: tell the user its address"
    text = f"Made, {how}: {sizes}"
    return RunResult(text, content=result.content, action=action, outputs=tuple(pictures))


def _failure(failure: Failure, action: Mapping[str, Any]) -> RunResult:
    error = RunError(failure.row.type, failure.code, failure.message)
    return RunResult(prompt_text(failure), error, action=action)


def _failed(result: CallResult, action: Mapping[str, Any], bytes_max: int) -> RunResult:
    text = text_of(result, bytes_max=bytes_max)
    error = RunError(TOOL_ERROR_TYPE, content=result.content)
    return RunResult(text, error, result.content, action)


def _head(number: int, source: Source) -> str:
    return " ".join(filter(None, (f"[{number}]", source.title, source.url)))


def _that_have_room(sources: Sequence[Source], first: int, room: int) -> Sequence[Source]:
    """Return the first sources whose titles and addresses fit, one at least: what is not shown cannot be cited."""
    for place, source in enumerate(sources):
        room -= len(_head(first + place, source).encode("utf-8", "replace")) + 2
        if room < 0:
            return sources[: max(1, place)]
    return sources


def _share(sizes: Sequence[int], room: int) -> int:
    """Return how long each text may be so that all fit: those that are shorter leave their rest to the others."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(0, room // left)
        room -= size
        left -= 1
    return max(sizes, default=0)


def _cut(text: str, bytes_max: int) -> str:
    """Return the beginning of a text up to the end of a word."""
    if bytes_max < _LEAST_TEXT:
        return ""
    kept = text.encode("utf-8", "replace")[: bytes_max - 8].decode("utf-8", "ignore")
    word = kept.rfind(" ")
    return f"{kept[:word] if word > len(kept) // 2 else kept} …"
