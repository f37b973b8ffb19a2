"""A sink of access lines that keeps them."""

from collections.abc import Callable


class LineList:
    """Keeps access lines."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._sources: list[Callable[[], None]] = []

    @property
    def lines(self) -> list[bytes]:
        for source in self._sources:
            source()
        return self._lines

    def put(self, line: bytes) -> None:
        self._lines += line.splitlines(keepends=True)

    def draw(self, source: Callable[[], None]) -> None:
        self._sources.append(source)

    def wake(self) -> None:
        """Do nothing: whoever looks asks the sources."""
