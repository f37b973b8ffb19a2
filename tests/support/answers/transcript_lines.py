"""Nouns and events as lines of a transcript."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)


def told(path: str, noun: Any) -> list[str]:
    """Return one line per field that is not at its default."""
    lines: list[str] = []
    for name, default in _fields(noun):
        value = getattr(noun, name)
        if value == default:
            continue
        here = f"{path}.{name}"
        rows = value if isinstance(value, tuple) and value else (value,)
        for index, row in enumerate(rows):
            at = f"{here}[{index}]" if rows is value else here
            if dataclasses.is_dataclass(row) or isinstance(row, msgspec.Struct):
                lines.extend(told(at, row) or [f"{at} = {type(row).__name__}()"])
            else:
                lines.append(f"{at} = {row!r}")
    return lines


def _fields(noun: Any) -> Iterator[tuple[str, Any]]:
    """Yield each field's name and default, of a dataclass or a struct."""
    if isinstance(noun, msgspec.Struct):
        # Not by `structs.fields`, which reads the annotations: an `array[int]` exists for type checkers only.
        names, defaults = noun.__struct_fields__, noun.__struct_defaults__
        unset = (dataclasses.MISSING,) * (len(names) - len(defaults))
        yield from zip(names, (*unset, *defaults), strict=True)
        return
    for field in dataclasses.fields(noun):
        # What follows from the others is not said.
        if not field.init:
            continue
        made = field.default_factory
        yield field.name, field.default if made is dataclasses.MISSING else made()


def event_of(words: list[str]) -> Event:
    """Return the event that these words spell."""
    match words:
        case ["begin", prompt_tokens]:
            return Begin("id-1", "llama", 1_700_000_000, int(prompt_tokens), "fp_1")
        case ["echo", choice, text]:
            return PromptEcho(int(choice), text, (1, 2))
        case ["start", choice, block, ("text" | "reasoning") as kind]:
            return BlockStart(int(choice), int(block), kind)
        case ["call", choice, block, name, call_id]:
            return BlockStart(int(choice), int(block), "call", name, call_id)
        case ["delta", choice, block, text, *logprobs]:
            tokens = tuple(token_of(spelled) for spelled in logprobs)
            return Delta(int(choice), int(block), text, max(1, len(tokens)), tokens)
        case ["end", choice, block, ("text" | "reasoning") as kind, text]:
            return BlockEnd(int(choice), int(block), kind, text)
        case ["called", choice, block, name, call_id, text]:
            return BlockEnd(int(choice), int(block), "call", text, name, call_id)
        case ["finish", choice, ("stop" | "length" | "tool_calls") as reason]:
            return Finish(int(choice), reason)
        case ["usage", prompt, completion, cached, reasoning]:
            return Usage(int(prompt), int(completion), int(cached), int(reasoning))
        case ["done"]:
            return End()
        case ["fail", kind, message]:
            return Fail(SmgError(ErrorKind(kind), message))
        case _:
            raise AssertionError(f"no such event: {words}")


def token_of(spelled: str) -> TokenLogprob:
    """Return the token spelled `text:logprob`, with itself as its only alternative."""
    text, _, logprob = spelled.rpartition(":")
    top = TopLogprob(1, text, text.encode(), float(logprob))
    return TokenLogprob(1, text, text.encode(), float(logprob), (top,))
