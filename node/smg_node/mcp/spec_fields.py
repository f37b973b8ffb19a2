"""Spec fields: the fields of a server's definition that are read in more than one place, and rules of its tools. Pure."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, get_args

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.tool_owner import ToolShape
from smg_node.core.json_cursor import Cursor
from smg_node.core.prices.call_price import read_call_price
from smg_node.mcp.definition import with_headers
from smg_node.mcp.server_spec import ToolRule, Verdict

NAMES_MAX: Final = 1_000
WORD_MAX: Final = 2_048
_TIMEOUT_S_MAX: Final = 86_400
_OUTPUT_BYTES_MAX: Final = 16 << 20
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HINTS: Final = ("read_only", "idempotent")
"""Where no is another thing than nothing."""
_RULE_FIELDS: Final = (
    "alias", "shape", "arguments", "approval", "timeout_s", "output_bytes_max", "price_per_call",
    "read_only", "idempotent", "defer", "hidden",
)  # fmt: skip


def read_rule(rule: Cursor) -> ToolRule:
    """Return what is said of one tool; mistakes are noted with their paths."""
    rule.only(_RULE_FIELDS)
    alias = text_at(rule, "alias")
    if alias and not _ALIAS.fullmatch(alias):
        rule.problem("alias", "must have 1 to 64 letters, digits, _ and -")
    arguments = rule.object("arguments")
    rename: dict[str, str] = {}
    defaults: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}
    if arguments is not None:
        arguments.only(("rename", "defaults", "fixed"))
        renamed = arguments.object("rename")
        if renamed is not None:
            rename = {name: text_at(renamed, name) for name in renamed.values}
        if len(set(rename.values())) < len(rename):
            arguments.problem("rename", "gives one argument of the server two names")
        given = [arguments.object(key) for key in ("defaults", "fixed")]
        defaults, fixed = ({} if one is None else one.values for one in given)
    return ToolRule(
        alias=alias,
        shape=rule.word("shape", get_args(ToolShape)) or "",
        rename=rename,
        defaults=defaults,
        fixed=fixed,
        approval=one_of(rule, "approval", Verdict),
        timeout_s=rule.number("timeout_s", low=0, high=_TIMEOUT_S_MAX) or 0.0,
        output_bytes_max=rule.integer("output_bytes_max", low=0, high=_OUTPUT_BYTES_MAX) or 0,
        price_per_call=_price(rule),
        read_only=rule.flag("read_only"),
        idempotent=rule.flag("idempotent"),
        defer=rule.flag("defer") or False,
        hidden=rule.flag("hidden") or False,
    )


def _price(rule: Cursor) -> str:
    """Return a price as a decimal text, "" for none."""
    said = rule.raw("price_per_call")
    if said is None:
        return ""
    text = said
    if isinstance(said, int | float) and not isinstance(said, bool):
        try:
            text = format(Decimal(repr(said)), "f")
        except InvalidOperation:
            text = ""
    if not isinstance(text, str):
        rule.problem("price_per_call", "must be an amount of the currency, such as 0.005")
        return ""
    try:
        read_call_price(text)
    except ValueError as error:
        rule.problem("price_per_call", str(error))
        return ""
    return text


def plain_rule(rule: ToolRule) -> dict[str, Any]:
    """Return it as plain values that `read_rule` reads again."""
    plain = msgspec.to_builtins(rule)
    plain["arguments"] = without_empty(
        {key: plain.pop(key) for key in ("rename", "defaults", "fixed")}
    )
    return {
        key: value for key, value in plain.items() if value or (key in _HINTS and value is False)
    }


def without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what says something."""
    return {key: value for key, value in values.items() if value}


def one_of(cursor: Cursor, key: str, words: Any, *, required: bool = False) -> Any:
    """Return one of the words of a `Literal`, None where none of them stands there."""
    return cursor.word(key, get_args(words), required=required)


def text_at(cursor: Cursor, key: str) -> str:
    """Return a printable text, "" where there is none."""
    found = cursor.text(key, characters_max=WORD_MAX)
    if found and not found.isprintable():
        cursor.problem(key, "holds a character that cannot be printed")
    return found or ""


def words_at(cursor: Cursor, key: str, *, empty: bool = False) -> tuple[str, ...]:
    """Return a list of texts, each of one character at least unless `empty` ones may be."""
    values = cursor.array(key, at_most=NAMES_MAX) or []
    found = cursor.elements(key, str, "a string", values) or []
    for at, one in enumerate(found):
        if len(one) > WORD_MAX or not (one or empty):
            cursor.problem(key, f"must have 1 to {WORD_MAX} characters", index=at)
    return tuple(found)


def is_tool(name: str) -> bool:
    """Whether a tool may be called so."""
    return 0 < len(name) <= 256 and name.isprintable()


def check_header(cursor: Cursor, name: str, *, key: str = "") -> None:
    """Note a header that cannot be sent, or that is not an operator's to give."""
    try:
        with_headers({name: "value"})
    except SmgError as error:
        cursor.problem(key or name, error.message)
