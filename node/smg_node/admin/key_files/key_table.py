"""Key table: a CSV file of keys of any origin: `tenant,role,name,key,expires`, or with `sha256` for `key`. Pure."""

from collections.abc import Mapping
from typing import Final

from smg_node.access.smg_flags import printable_name
from smg_node.admin.key_files.csv_rows import CsvError, csv_rows
from smg_node.admin.key_files.key_row import KeyFile, KeyRow, RowError, RowList
from smg_node.admin.key_files.key_values import (
    expires_of,
    key_sha256,
    role_of,
    sha256_text,
    tenant_of,
)

_COLUMNS: Final = ("tenant", "role", "name", "key", "sha256", "expires")


def read_key_table(text: str, *, tenant: str) -> KeyFile:
    """Return the keys of a table; `tenant` is for those that have none."""
    found = RowList()
    try:
        for line, fields in csv_rows(text, needed=(), known=_COLUMNS):
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
    role = role_of(fields.get("role", ""))
    key, digest = fields.get("key", ""), fields.get("sha256", "")
    if bool(key) == bool(digest):
        raise RowError("key", "one of key and sha256 is needed")
    sha256, short = (sha256_text(digest), False) if digest else key_sha256(key)
    return KeyRow(
        line,
        sha256,
        tenant_of(fields.get("tenant", "") or tenant, role),
        role,
        printable_name(fields.get("name", "")),
        expires_of(fields.get("expires", "")),
        short=short,
    )
