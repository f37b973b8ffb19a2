"""Field reader: reads operator bodies and queries field by field; every refusal names its place."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import whole as integral
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.query_bounds import NUMBER_DIGITS_MAX, SWITCH_OFF, SWITCH_ON

_NAME_SHOWN_MAX: Final = 64


async def read_fields(
    bodies: BodyReader, request: HttpRequest, known: Collection[str]
) -> Mapping[str, Any]:
    """Return the object in the body; INVALID_REQUEST for a field that is not `known`."""
    body = await bodies.large.decoded(await bodies.json(request))
    for key in body:
        if key not in known:
            hint = did_you_mean(key, known) or f"; known: {', '.join(known)}"
            shown = key[:_NAME_SHOWN_MAX]
            raise invalid(f"there is no {shown!r}{hint}", shown, "unknown_parameter")
    return body


def text_field(body: Mapping[str, Any], key: str, most: int, *, empty: bool = False) -> str | None:
    """Return a text of at most `most` characters, None if it is absent; "" only where that means something."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > most or not (value or empty):
        raise invalid(f"{key} must be a string of {0 if empty else 1} to {most} characters", key)
    return value


def switch_field(body: Mapping[str, Any], key: str) -> bool:
    """Return true or false; false if it is absent."""
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"{key} must be true or false", key)
    return bool(value)


def number_field(
    body: Mapping[str, Any], key: str, *, low: float, high: float, whole: bool = False
) -> float | None:
    """Return a number in `low`..`high`, None if it is absent."""
    value = body.get(key)
    if value is None:
        return None
    number: float | None = integral(value) if whole else None
    if not whole and isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if number is None or not low <= number <= high:
        kind = "a whole number" if whole else "a number"
        raise invalid(f"{key} must be {kind} from {low:g} to {high:g}", key)
    return number


def query_switch(request: HttpRequest, key: str) -> bool:
    """Return a parameter of the query that is on or off; off if it is absent."""
    said = request.query.get(key, "").lower()
    if said not in SWITCH_ON and said not in SWITCH_OFF:
        raise invalid(f"{key} must be true or false", key)
    return said in SWITCH_ON


def query_word(request: HttpRequest, key: str, words: Collection[str]) -> str:
    """Return a word of the query, one of these; "" if it is absent."""
    said = request.query.get(key)
    if said is not None and said not in words:
        hint = did_you_mean(said, words)
        raise invalid(f"{key} must be one of {', '.join(words)}{hint}", key)
    return said or ""


def query_number(request: HttpRequest, key: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number of the query."""
    said = request.query.get(key)
    if said is None:
        return default
    if not said.isascii() or not said.isdecimal() or len(said) > NUMBER_DIGITS_MAX:
        raise invalid(f"{key} must be a whole number", key)
    if not low <= int(said) <= high:
        raise invalid(f"{key} must be from {low} to {high}", key)
    return int(said)


def expected_version(request: HttpRequest) -> int | None:
    """Return the version in `If-Match`: 0 expects nothing to be there, None (`*`) anything.

    INVALID_REQUEST with status 428 if the client names none: it could overwrite a value it has not
    seen.
    """
    said = request.headers.get("if-match", "").strip()
    if not said:
        raise _without_version()
    if said == "*":
        return None
    quoted = len(said) > 1 and said[0] == said[-1] == '"'
    plain = said[1:-1] if quoted else said
    if not plain.isascii() or not plain.isdecimal() or len(plain) > NUMBER_DIGITS_MAX:
        raise invalid('If-Match must be a version such as "115964116992", 0 or *', "if-match")
    return int(plain)


def _without_version() -> SmgError:
    error = invalid(
        "say with If-Match which version you have seen: the `version` of the setting, 0 if it is not set,"
        " * to write over anything",
        "if-match",
        "precondition_required",
    )
    error.status = 428
    return error
