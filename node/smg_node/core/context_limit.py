"""Context limit: error of a prompt that is longer than a model takes, and that error in engines' own words. Pure.

Clients look for words: what shortens a conversation by itself does so when it reads `prompt is too long: N
tokens > M maximum`. So that is what such an error says, with the numbers beside it for dialects that have
further words of their own. Engines and servers each have another sentence for it, and most of them name
both numbers.
"""

import re
from typing import Final

from smg_node.core.errors import ErrorKind, Excess, SmgError

TOO_LONG_CODE: Final = "context_length_exceeded"
_READ_CHARACTERS: Final = 4_096
"""So much of an engine's words is looked at; a sentence is all there is to read."""
_DIGITS: Final = r"(\d{1,12})"
# What the sentence has in common with no other refusal.
_SIGNS: Final = re.compile(
    r"maximum context length|model's context length|maximum context limit|exceeds? (?:the )?context (?:limit|window)"
    r"|available context size|exceed_context_size|prompt is too long|input is too long|input too long"
    r"|longer than the maximum model length|longer than the model's"
    r"|input tokens exceed the configured limit|exceeds the maximum allowed length|maximum input length"
    r"|`inputs` tokens \+ `max_new_tokens` must be|should not exceed max_seq_len|exceeds max_seq_len"
    r"|exceeds the context window|context_length_exceeded"
)
# Where in it the length of the prompt stands, and where the longest one, the surest first.
_TOKENS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"too long: {_DIGITS} tokens",
        rf"{_DIGITS} in the messages",
        rf"{_DIGITS} (?:tokens )?(?:from|of|in) (?:the|your) (?:input|prompt|messages)",
        rf"passed {_DIGITS} input tokens",
        rf"request has {_DIGITS} input tokens",
        rf"messages resulted in {_DIGITS}",
        rf"given: {_DIGITS} `inputs` tokens",
        rf"(?:prompt|input)(?: length)? \((?:length )?{_DIGITS}",
        rf"the request \({_DIGITS} tokens\)",
        rf"context limit: {_DIGITS} \+",
        rf"you requested(?: a total of)? {_DIGITS} tokens",
    )
)
_MOST: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"tokens > {_DIGITS} maximum",
        rf"context length (?:is|of)(?: only)? {_DIGITS}",
        rf"context length \({_DIGITS}",
        rf"context size \({_DIGITS}",
        rf"maximum model length of {_DIGITS}",
        rf"maximum allowed length \({_DIGITS}",
        rf"configured limit of {_DIGITS}",
        rf"must be <= {_DIGITS}",
        rf"max_seq_len\D{{0,4}}{_DIGITS}",
        rf"\+ \d{{1,12}} > {_DIGITS}",
    )
)


def prompt_too_long(
    tokens: int, most: int, where: str | None, *, context: int | None = None
) -> SmgError:
    """Return the error for a prompt of `tokens` where at most `most` are taken, of a `context` if that is known."""
    return SmgError(
        ErrorKind.INVALID_REQUEST,
        f"prompt is too long: {tokens} tokens > {most} maximum",
        where=where,
        code=TOO_LONG_CODE,
        excess=Excess(tokens, most, context),
    )


def is_too_long_message(words: str) -> bool:
    """Whether an engine's or a server's words tell of a prompt that is too long."""
    return _SIGNS.search(words[:_READ_CHARACTERS].lower()) is not None


def excess_in(words: str) -> Excess | None:
    """Return the numbers in such words; None unless both are there, and the prompt is the longer one."""
    text = words[:_READ_CHARACTERS].lower()
    tokens, most = _first(_TOKENS, text), _first(_MOST, text)
    if tokens is None or most is None or tokens <= most:
        return None
    return Excess(tokens, most, most)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    found = next((match for each in patterns if (match := each.search(text))), None)
    return None if found is None else int(found[1])
