"""CSV rows: fields by the names of a header line, each with its line. Pure."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from smg_node.admin.key_files.key_row import ROWS_MAX, RowError

_COLUMNS_MAX: Final = 256
_SHOWN_MAX: Final = 40


class CsvError(RowError):
    """A file that cannot be read further from a line on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__("", message)
        self.line = line


def csv_rows(
    text: str, *, needed: Sequence[str], known: Sequence[str] | None
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and fields of each row, blanks around them left out; CsvError where there is no next one.

    `needed` are columns that must be there; others than `known` may not, unless that is None. Empty lines are no rows.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: Sequence[str] | None = None
    count = 0
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise CsvError(line, f"this is no CSV: {str(error)[:80]}") from None
        if fields is None:
            break
        if not any(field.strip() for field in fields):
            continue
        if names is None:
            names = _header(line, fields, needed, known)
            continue
        count += 1
        if count > ROWS_MAX:
            raise CsvError(line, f"more than {ROWS_MAX} rows")
        if len(fields) != len(names):
            raise CsvError(line, f"{len(fields)} fields, where the header has {len(names)}")
        yield line, {name: field.strip() for name, field in zip(names, fields, strict=True) if name}
    if names is None:
        columns = ", ".join(needed or known or ())
        raise CsvError(1, f"the file is empty, where a header of {columns} is expected")


def _header(
    line: int, fields: Sequence[str], needed: Sequence[str], known: Sequence[str] | None
) -> Sequence[str]:
    names = [field.strip().lower() for field in fields]
    named = [name for name in names if name]
    if len(names) > _COLUMNS_MAX or len(set(named)) != len(named):
        raise CsvError(line, "the header names a column twice, or very many")
    if missing := [name for name in needed if name not in names]:
        raise CsvError(line, f"the header has no column {' and no '.join(missing)}")
    # Of a file without a header the first line may hold keys: only what is known is shown.
    if known is not None and any(name not in known for name in named):
        raise CsvError(line, f"the header has other columns than {', '.join(known)}")
    return names
