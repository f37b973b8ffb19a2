"""Key body: reads what a new key is to be restricted to, field by field."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.access.restrictions import (
    APIS,
    ENTRIES_MAX,
    MODEL_CHARACTERS_MAX,
    Restrictions,
    read_network,
    restrictions_of,
)
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.errors import invalid
from smg_node.core.request_context import PRIORITIES

FIELDS: Final = ("models", "networks", "routes", "max_priority")


def read_restrictions(body: Mapping[str, Any]) -> Restrictions | None:
    """Return what a key is to be restricted to, None for nothing; INVALID_REQUEST names the field."""
    if all(body.get(name) is None for name in FIELDS):
        return None
    return restrictions_of(
        _list(body, "models", _model),
        _list(body, "networks", _network),
        _list(body, "routes", _route),
        _priority(body),
    )


def _list(body: Mapping[str, Any], name: str, read: Callable[[str], str]) -> tuple[str, ...]:
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > ENTRIES_MAX:
        raise invalid(f"{name} must be a list of at most {ENTRIES_MAX} texts", name)
    found: dict[str, None] = {}
    for at, one in enumerate(value):
        where = f"{name}[{at}]"
        if not isinstance(one, str):
            raise invalid(f"{where} must be a text", where)
        try:
            found[read(one)] = None
        except ValueError as error:
            raise invalid(f"{where} {error}", where) from None
    return tuple(found)


def _model(text: str) -> str:
    if not 1 <= len(text) <= MODEL_CHARACTERS_MAX or not text.isprintable():
        raise ValueError(f"must have 1 to {MODEL_CHARACTERS_MAX} printable characters")
    return text


def _network(text: str) -> str:
    try:
        return read_network(text[:MODEL_CHARACTERS_MAX])
    except ValueError:
        raise ValueError(
            f"must be a network such as 10.0.0.0/8 or 2001:db8::/32, or an address: {text[:64]!r}"
        ) from None


def _route(text: str) -> str:
    if text not in APIS:
        hint = did_you_mean(text, APIS)
        raise ValueError(f"must be one of {', '.join(APIS)}{hint}")
    return text


def _priority(body: Mapping[str, Any]) -> str:
    value = body.get("max_priority")
    if value is None:
        return ""
    if value not in PRIORITIES:
        raise invalid(f"max_priority must be one of {', '.join(PRIORITIES)}", "max_priority")
    return str(value)
