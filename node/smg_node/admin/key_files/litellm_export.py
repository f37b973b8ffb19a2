"""LiteLLM export: its table of virtual keys as CSV, `token,key_alias,team_id,expires,models`. Pure.

`token` is the SHA-256 of the whole key in hexadecimal, so no plain key is needed; one that still stands there plain
(`sk-…`) is taken as well. `team_id` becomes the tenant, `key_alias` the name. Other columns of the table are passed
over, but for `blocked`: such keys are not taken over. Read in LiteLLM 1.110: `LiteLLM_VerificationToken` of its
schema.prisma, `hash_token` of its proxy.
"""

import json
from collections.abc import Mapping
from typing import Final

from smg_node.access.smg_flags import printable_name
from smg_node.admin.key_files.csv_rows import CsvError, csv_rows
from smg_node.admin.key_files.key_row import KeyFile, KeyRow, RowError, RowList
from smg_node.admin.key_files.key_values import (
    expires_of,
    key_sha256,
    sha256_text,
    tenant_of,
)

_PLAIN: Final = "sk-"
_MODELS_MAX: Final = 1_024
_TRUE: Final = frozenset({"t", "true", "1", "yes"})
_EVERYTHING: Final = frozenset({"all-proxy-models", "*"})
"""Names that stand for every model there."""


def read_litellm_export(text: str, *, tenant: str) -> KeyFile:
    """Return the keys of an export; `tenant` is for those of no team."""
    found = RowList()
    try:
        for line, fields in csv_rows(text, needed=("token",), known=None):
            if fields.get("blocked", "").lower() in _TRUE:
                found.blocked += 1
                continue
            try:
                found.add(_row(line, fields, tenant))
            except RowError as error:
                found.refuse(line, error)
            if found.full:
                break
    except CsvError as error:
        found.refuse(error.line, error)
    return found.done()


def _row(line: int, fields: Mapping[str, str], tenant: str) -> KeyRow:
    token = fields["token"]
    plain = token.startswith(_PLAIN)
    sha256, short = key_sha256(token, "token") if plain else (sha256_text(token, "token"), False)
    return KeyRow(
        line,
        sha256,
        tenant_of(fields.get("team_id", "") or tenant, "user", "team_id"),
        "user",
        printable_name(fields.get("key_alias", "")),
        expires_of(fields.get("expires", "")),
        _models(fields.get("models", "")),
        short,
    )


def _models(text: str) -> tuple[str, ...]:
    """Return a list of models, as PostgreSQL writes one (`{a,b}`) or as JSON does; () for all."""
    if text in ("", "{}", "[]"):
        return ()
    if text.startswith("{") and text.endswith("}"):
        names = _array(text[1:-1])
    else:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise RowError("models", "neither {a,b} nor a JSON list of names")
        names = found
    if len(names) > _MODELS_MAX:
        raise RowError("models", f"more than {_MODELS_MAX} names")
    return () if _EVERYTHING.intersection(names) else tuple(names)


def _array(text: str) -> list[str]:
    """Return the entries of an array of PostgreSQL; quoted ones have `\\` before quotes and backslashes."""
    entries, entry, quoted, escaped = [], "", False, False
    for one in text:
        if escaped:
            entry, escaped = entry + one, False
        elif one == "\\":
            escaped = True
        elif one == '"':
            quoted = not quoted
        elif one == "," and not quoted:
            entries.append(entry)
            entry = ""
        else:
            entry += one
    if quoted or escaped:
        raise RowError("models", "its quotes do not fit")
    return [*entries, entry]
