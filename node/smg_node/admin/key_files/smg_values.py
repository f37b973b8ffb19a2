"""SMG values: a file of keys as that gateway takes them on its command line, one a line. Pure.

    TENANT:KEY                 --tenant-api-key           a key of role user
    ID:NAME:ROLE:KEY           --control-plane-api-keys   ROLE is admin or user

The flag may stand before its value. Empty lines and lines that begin with # are passed over.
"""

import re
from typing import Final

from smg_node.access.smg_flags import GivenKeyError, control_plane_key, tenant_key
from smg_node.admin.key_files.key_row import ROWS_MAX, KeyFile, KeyRow, RowError, RowList

_LINES_MAX: Final = 10 * ROWS_MAX
_CONTROL_FLAG: Final = "--control-plane-api-keys"
_CONTROL_ROLES: Final = ("admin", "user")
_FLAG: Final = re.compile(r"(--tenant-api-key|--control-plane-api-keys)[ \t=]\s*(.+)", re.DOTALL)
_QUOTES: Final = ("'", '"')


def read_smg_values(text: str, *, tenant: str) -> KeyFile:
    """Return the keys of a file of such values; each has its own tenant, so that `tenant` is for nobody."""
    found = RowList()
    for line, said in enumerate(text.split("\n"), 1):
        value = said.strip()
        if not value or value.startswith("#"):
            continue
        try:
            if line > _LINES_MAX:
                raise RowError("", f"more than {_LINES_MAX} lines")
            found.add(_row(line, value))
        except RowError as error:
            found.refuse(line, error)
        if found.full:
            break
    return found.done()


def _row(line: int, said: str) -> KeyRow:
    flagged = _FLAG.fullmatch(said)
    flag, value = ("", said) if flagged is None else (flagged[1], _unquoted(flagged[2]))
    parts = value.split(":", 3)
    control = len(parts) == 4 and parts[2] in _CONTROL_ROLES
    if not flag and ":" not in value:
        raise RowError("", "neither TENANT:KEY nor ID:NAME:ROLE:KEY")
    try:
        is_control = flag == _CONTROL_FLAG or (not flag and control)
        key = control_plane_key(value) if is_control else tenant_key(value)
    except GivenKeyError as error:
        raise RowError(error.part, str(error)) from None
    return KeyRow(line, key.sha256.hex(), key.tenant, key.role, key.name, short=key.short)


def _unquoted(value: str) -> str:
    """Return a value without the quotes of a shell around it."""
    if len(value) > 1 and value[0] in _QUOTES and value[0] == value[-1]:
        return value[1:-1]
    return value
