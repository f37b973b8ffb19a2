"""Parsed values as plain ones, at any depth, so that two can be compared whatever classes they are of."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """Return structs and dataclasses as their fields, sequences as lists."""
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
