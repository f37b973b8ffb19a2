"""Header values of the modern era on the serving side: decoded, and compared with the arguments they repeat. Pure."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from smg_node.mcp.tools.mirrored_arguments import MirrorError, mirrored_in
from smg_node.mcp.wire.headers import PARAMETER_PREFIX

_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
_WHOLE: Final = re.compile(r"(-?[0-9]{1,40})(?:\.0{1,40})?")


def decoded_header(value: str) -> str | None:
    """Return what a header's value stands for: itself, or what is in its base64; None for base64 that is none."""
    found = _ENCODED.fullmatch(value)
    if found is None:
        return value
    spelled = found[1]
    try:
        plain = base64.b64decode(spelled, validate=True)
        return plain.decode() if base64.b64encode(plain).decode() == spelled else None
    except (binascii.Error, ValueError):
        return None


def differing_argument(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> str:
    """Return the header in which a call and its mirrored arguments differ, "" for none.

    A schema whose marks contradict the protocol demands nothing: clients leave such a tool out.
    """
    try:
        marked = mirrored_in(schema)
    except MirrorError:
        return ""
    for one in marked:
        name = PARAMETER_PREFIX + one.token.lower()
        given, value = headers.get(name), _at(one.path, arguments)
        spelled = isinstance(value, bool | str | int) or _is_whole(value)
        if (given is not None) != spelled:
            return name
        if given is not None and not _means(given.strip(), value):
            return name
    return ""


def _at(path: tuple[str, ...], arguments: Any) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _means(given: str, value: Any) -> bool:
    """Whether a header stands for that argument; numbers count, not their spelling: 42.0 is 42."""
    plain = decoded_header(given)
    if plain is None or isinstance(value, str):
        return isinstance(value, str) and plain == value
    if isinstance(value, bool):
        return plain == ("true" if value else "false")
    whole = _WHOLE.fullmatch(plain)
    return whole is not None and bool(int(whole[1]) == value)
