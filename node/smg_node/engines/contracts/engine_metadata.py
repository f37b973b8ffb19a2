"""Engine metadata: server and model settings of an engine, flattened and bounded, secrets removed.
Pure.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from smg_node.engines.contracts.sampling_rules import clean_defaults

_SECRET_PARTS: Final = (
    "api_key",
    "apikey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "private_key",
    "access_key",
    "authorization",
)
SEED_DRAWN_MIN: Final = 1 << 16
"""Engines draw a seed below 2^30 where none is given; one below this is hardly drawn."""
_DRAWN_NAME: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}.{0,32}"
)
_VALUE_MAX_CHARACTERS: Final = 256
_VALUES_MAX: Final = 512
_DEPTH_MAX: Final = 4


def flattened(values: Mapping[str, object]) -> dict[str, str]:
    """Return a tree of settings as dotted names and texts, without secrets, nulls and empty texts.

    At most 512 names, four levels deep; long texts are cut. Lists of plain values are joined by commas.
    """
    found: dict[str, str] = {}
    _flatten(values, "", 1, found)
    return found


def _flatten(values: Mapping[str, object], prefix: str, depth: int, found: dict[str, str]) -> None:
    for key in sorted(values):
        value = values[key]
        if len(found) >= _VALUES_MAX:
            return
        if is_secret(key):
            continue
        if isinstance(value, Mapping):
            if depth < _DEPTH_MAX:
                _flatten(value, f"{prefix}{key}.", depth + 1, found)
            continue
        text = _text(value)
        if text and "@" not in text.partition("://")[2]:  # a URL with credentials in it
            found[f"{prefix}{key}"] = text[:_VALUE_MAX_CHARACTERS]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, list | tuple):
        plain = [item for item in value if isinstance(item, str | int | float)]
        return ",".join(_text(item) for item in plain)
    return str(value)


def is_secret(key: str) -> bool:
    """Whether a setting of this name may hold a credential."""
    name = key.lower()
    return (
        name == "token"
        or name.endswith(("_token", "_tokens_file"))
        or any(part in name for part in _SECRET_PARTS)
    )


def declared_fields(message: Any, *, skip: Iterable[str] = ()) -> dict[str, object]:
    """Return the fields of a flat protobuf message that are set, less those that change all the time."""
    hidden = frozenset(skip) | VOLATILE
    return {field.name: value for field, value in message.ListFields() if field.name not in hidden}


def plain(values: Any) -> dict[str, object]:
    """Return a protobuf `Struct` as a dictionary. Numbers are floats, also those that JSON cannot
    spell.
    """
    return {key: _plain(value) for key, value in values.fields.items()}


def _plain(value: Any) -> object:
    match value.WhichOneof("kind"):
        case "struct_value":
            return plain(value.struct_value)
        case "list_value":
            return [_plain(one) for one in value.list_value.values]
        case "null_value" | None:
            return None
        case kind:
            found: object = getattr(value, kind)
            return found


VOLATILE: Final = frozenset(
    {"active_requests", "uptime_seconds", "last_receive_timestamp", "is_paused"}
)


def default_sampling(text: str) -> dict[str, float]:
    """Return the sampling defaults in a JSON text; garbage gives nothing."""
    try:
        return clean_defaults(msgspec.json.decode(text)) if text else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def drawn_instance(started: Any, seed: object) -> str:
    """Return what only one process has of those that tell when they began and what seed they drew.

    The time alone is one of whole seconds, in which several may begin; a small seed is its
    operator's, who gives it to all engines. "" where one of them is missing.
    """
    drawn = whole(seed)
    if drawn is None or drawn < SEED_DRAWN_MIN or started.seconds <= 0:
        return ""
    return f"{started.seconds}.{started.nanos} {drawn}"


def named_instance(name: str) -> str:
    """Return an engine's name for itself if it was drawn, as UUIDs are; "" for one that was given."""
    return name if _DRAWN_NAME.fullmatch(name) else ""


def positive(value: int) -> int | None:
    """Return `value`, or None for proto3's "not said"."""
    return value if value > 0 else None


def whole(value: object) -> int | None:
    """Return a positive whole number out of loose JSON, where all numbers are floats; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < 2**53 and value == int(value) else None
