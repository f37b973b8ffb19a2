"""What is said to a database: heard at the driver, and interrupted there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def before_each(hear: Callable[[str], None]) -> Iterator[None]:
    """Call `hear` with every statement of every database before it is said; BEGIN of SQLite is not counted."""

    def listener(
        _connection: Any, _cursor: Any, statement: str, _values: Any, _context: Any, _many: bool
    ) -> None:
        if not statement.startswith("BEGIN"):
            hear(statement)

    event.listen(Engine, "before_cursor_execute", listener)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", listener)


@contextmanager
def said() -> Iterator[list[str]]:
    """Collect the statements that are said inside."""
    heard: list[str] = []
    with before_each(heard.append):
        yield heard
