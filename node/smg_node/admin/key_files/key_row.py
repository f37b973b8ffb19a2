"""Key row: one key of another gateway as a file has it, without the key; problems by line and column. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FILE_BYTES_MAX: Final = 64 << 20
ROWS_MAX: Final = 100_000
PROBLEMS_MAX: Final = 50
"""More than these say nothing new."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. `sha256` is of the whole key, in hexadecimal; `expires_ms` None for never.

    `models` are those that the other gateway lets it ask for, none for all. `short`: the key itself could be guessed.
    """

    line: int
    sha256: str
    tenant: str
    role: str
    name: str = ""
    expires_ms: int | None = None
    models: tuple[str, ...] = ()
    short: bool = False


@dataclass(frozen=True, slots=True)
class RowProblem:
    """What is wrong in a file, and where; `column` is empty where it is the whole line. It never holds a key."""

    line: int
    column: str
    message: str

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        return f"line {self.line}{column}: {self.message}"


class RowError(ValueError):
    """A value that will not do; names its column."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Rows of a file, what is wrong with it, and how many of its rows are no keys to take over."""

    rows: Sequence[KeyRow]
    problems: Sequence[RowProblem]
    blocked: int = 0


class RowList:
    """Rows and problems as they are found; a key that stands in a file twice counts once, and must be the same."""

    def __init__(self) -> None:
        self._rows: dict[str, KeyRow] = {}
        self._problems: list[RowProblem] = []
        self.blocked = 0
        """Rows of keys that their gateway has blocked."""

    @property
    def full(self) -> bool:
        """Whether enough problems were found."""
        return len(self._problems) >= PROBLEMS_MAX

    def add(self, row: KeyRow) -> None:
        """Take a row; RowError for one key with two owners."""
        first = self._rows.setdefault(row.sha256, row)
        if _owner(first) != _owner(row):
            raise RowError("", f"the key of line {first.line} again, and not the same otherwise")
        if len(self._rows) > ROWS_MAX:
            raise RowError("", f"more than {ROWS_MAX} keys")

    def refuse(self, line: int, error: RowError) -> None:
        """Note what is wrong with a line."""
        self._problems.append(RowProblem(line, error.column, str(error)))

    def done(self) -> KeyFile:
        """Return all of it."""
        return KeyFile([*self._rows.values()], self._problems[:PROBLEMS_MAX], self.blocked)


def _owner(row: KeyRow) -> tuple[object, ...]:
    return row.tenant, row.role, row.name, row.expires_ms, row.models
