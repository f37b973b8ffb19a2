"""Body checks that several APIs share: types of fields, names of tools, calls and their results."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from smg_chaos.vendor.errors.vendor_error import invalid

T = TypeVar("T")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def objects(value: Any, path: str) -> list[dict[str, Any]]:
    """Return a list of objects; VendorError if it is none."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise invalid(f"{path}: Input should be a valid list of objects", path)
    return value


def typed(body: Mapping[str, Any], key: str, kind: type[T], path: str = "") -> T | None:
    """Return a field of that type, None if it is missing or null; VendorError for any other type."""
    value = body.get(key)
    if value is None:
        return None
    wrong = isinstance(value, bool) and kind is not bool
    if kind is float and isinstance(value, int) and not wrong:
        return kind(value)  # type: ignore[call-arg]  # float takes a number
    if wrong or not isinstance(value, kind):
        where = f"{path}{key}"
        raise invalid(f"{where}: Input should be a valid {kind.__name__}", where)
    return value


def texts(value: Any) -> list[str]:
    """Return one string or a list of them as a list."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def between(value: float | None, least: float, most: float, path: str) -> None:
    """Refuse a number outside of its range."""
    if value is not None and not least <= value <= most:
        raise invalid(f"{path}: must be between {least:g} and {most:g}", path)


def first_unknown(body: Mapping[str, Any], known: frozenset[str]) -> str | None:
    """Return the first field that an API does not know."""
    return next((key for key in body if key not in known), None)


def tool_name(name: Any, path: str) -> str:
    """Return a tool's name; VendorError if it is none."""
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        raise invalid(f"{path}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'", path)
    return name
