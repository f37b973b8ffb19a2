"""Limit scope: whom a limit is for, as one text:
`tenant=acme,model=llama`, in that order; empty for all. `provider=openai-a` stands alone: what it
limits are the calls of a provider, whoever they are made for. `tool=search/web`, or
`tool=search/*` for all tools of a server together, limits runs of tools, and no request; beside it at
most two of tenant, key and model say for whom.

A name may be `*`: each tenant, key, model or tool has one of its own. The text is part of keys that travel in small
packets: what letters do not say is percent-encoded, and a long name is cut and marked by a digest of the whole.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import product
from typing import Final
from urllib.parse import quote, unquote

import msgspec

GLOBAL: Final = "global"
"""How the empty scope is written where an empty text would be lost."""
EACH: Final = "*"
NAME_CHARS_MAX: Final = 256
FIELDS: Final = ("tenant", "key", "model", "provider", "tool")
PROVIDER: Final = "provider"
TOOL: Final = "tool"
NAMED_MAX: Final = 3
ALL_TOOLS: Final = "/*"
"""Ends the name of all tools of a server, which have one limit together."""

_ROOM: Final = {1: 120, 2: 56, 3: 36}
"""Characters of a name where so many are named: all of it and the longest unit and window are one key of 152."""
_MARK: Final = "~"
_DIGEST_BYTES: Final = 8
_PLAIN: Final = "/:@+~"
"""Beside letters, digits and `_.-`."""


class ScopeError(ValueError):
    """Text that names nothing that a limit can be for."""


class Scope(msgspec.Struct, frozen=True):
    """Names as they were given; empty for what is not asked after, `*` for each."""

    tenant: str = ""
    key: str = ""
    model: str = ""
    provider: str = ""
    tool: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Which of tenant, key, model and tool it goes by, or that it is a provider's."""
        return tuple(field for field in FIELDS if getattr(self, field))

    @property
    def text(self) -> str:
        """The one text of this scope."""
        return scope_text(self.tenant, self.key, self.model, self.provider, self.tool)


def read_scope(text: str) -> Scope:
    """Return the scope that `tenant=a,key=k,model=m` (any of them, any order), the same with `tool=s/t` (three at most),
    `provider=p` or `global` means; ScopeError.
    """
    if text in ("", GLOBAL):
        return Scope()
    names: dict[str, str] = {}
    for part in text.split(","):
        field, equals, value = part.partition("=")
        field = field.strip()
        if not equals or field not in FIELDS:
            raise ScopeError(
                "say tenant=…, key=…, model=… or tool=…, or several with commas, or"
                f" provider=…: {part[:64]!r}"
            )
        if field in names:
            raise ScopeError(f"{field} is named twice")
        read = _read_tool if field == TOOL else read_name
        names[field] = read(field, unquote(value.strip()))
    if PROVIDER in names and len(names) > 1:
        raise ScopeError("provider stands alone: its calls are limited, whoever they are made for")
    if len(names) > NAMED_MAX:
        raise ScopeError(f"at most {NAMED_MAX} of {', '.join(names)} may be named together")
    return Scope(**names)


def read_name(field: str, value: str) -> str:
    """Return a name of a scope if it can be one; ScopeError."""
    if not value:
        raise ScopeError(f"{field} is empty")
    if len(value) > NAME_CHARS_MAX:
        raise ScopeError(f"{field} is longer than {NAME_CHARS_MAX} characters")
    if not value.isprintable() or "\ufffd" in value:
        raise ScopeError(f"{field} has characters that cannot be shown")
    if EACH in value and value != EACH:
        raise ScopeError(f"{field}: * stands alone, for each {field}")
    return value


def _read_tool(field: str, value: str) -> str:
    """Return the name of a tool, of all tools of a server, or of each tool, if it can be one; ScopeError."""
    server, _, tool = value.partition("/")
    if value == EACH or not value:
        return read_name(field, value)
    if not server or not tool:
        raise ScopeError(f"{field} is SERVER/TOOL, SERVER{ALL_TOOLS} or {EACH}: {value[:64]!r}")
    if EACH in server or (EACH in tool and tool != EACH):
        raise ScopeError(
            f"{field}: {EACH} stands for all tools of a server, or alone for each tool"
        )
    read_name(field, value.removesuffix(EACH))
    return value


def scope_text(tenant: str, key: str, model: str, provider: str = "", tool: str = "") -> str:
    """Return the text of these names; empty ones are not named."""
    values = zip(FIELDS, (tenant, key, model, provider, tool), strict=True)
    named = [(field, value) for field, value in values if value]
    room = _ROOM.get(len(named), _ROOM[NAMED_MAX])
    return ",".join(f"{field}={_short_of(field, value, room)}" for field, value in named)


def patterns(text: str) -> Iterator[str]:
    """Yield the scopes that speak of this one, which names no `*`, the most exact first.

    Of two with the same number of exact names the one that names the key is first, then the one with the tenant, then
    the one with the model. All tools of a server together are none of those that `tool=*` speaks of.
    """
    parts = _parts(text)
    may_be_each = [(0,) if _is_all_tools(*part) else (0, 1) for part in parts]
    choices = sorted(product(*may_be_each), key=lambda each: (sum(each), _order(parts, each)))
    for each in choices:
        yield ",".join(
            f"{field}={EACH if one else value}"
            for (field, value), one in zip(parts, each, strict=True)
        )


def is_instance(text: str) -> bool:
    """Whether this may be the scope of one request: nothing in it is named twice, or `*`."""
    if text.count(",") >= NAMED_MAX:
        return False
    parts = _parts(text)
    fields = [field for field, _ in parts]
    if PROVIDER in fields and len(fields) > 1:
        return False
    return fields == [field for field in FIELDS if field in fields] and all(
        value not in ("", EACH) for _, value in parts
    )


def _parts(text: str) -> Sequence[tuple[str, str]]:
    if not text:
        return ()
    return [(field, value) for field, _, value in (part.partition("=") for part in text.split(","))]


def _order(parts: Sequence[tuple[str, str]], each: Sequence[int]) -> tuple[int, ...]:
    by_field = {field: one for (field, _), one in zip(parts, each, strict=True)}
    return tuple(by_field.get(field, 0) for field in ("key", "tenant", "model"))


def _is_all_tools(field: str, value: str) -> bool:
    return field == TOOL and value.endswith(ALL_TOOLS)


def _short_of(field: str, value: str, room: int) -> str:
    if field != TOOL or value == EACH:
        return _short(value, room)
    server, _, tool = value.partition("/")
    if tool == EACH:
        return _short(server, room - len(ALL_TOOLS)) + ALL_TOOLS
    if len(said := quote(value, safe=_PLAIN)) <= room:
        return said
    # Each by itself, so that what is left still names a server and a tool.
    server = _short(server, room // 2 - 1)
    return f"{server}/{_short(tool, room - len(server) - 1)}"


def _short(value: str, room: int) -> str:
    if value == EACH:
        return EACH
    said = quote(value, safe=_PLAIN)
    if len(said) <= room:
        return said
    digest = blake2b(value.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    kept = ""
    for character in value:
        # By whole characters, so that what is left reads as itself.
        longer = kept + quote(character, safe=_PLAIN)
        if len(longer) + len(_MARK) + len(digest) > room:
            break
        kept = longer
    return f"{kept}{_MARK}{digest}"
