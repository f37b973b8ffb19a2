"""Last log line: the last one that a logger wrote while a command worked, for people who are told of a failure."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class _Keeping(logging.Handler):
    def __init__(self, lines: deque[str]) -> None:
        super().__init__(logging.INFO)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that says anything in place of the one before."""
        if (line := record.getMessage()).strip(": "):
            self._lines.append(line)


@contextmanager
def last_line(name: str) -> Iterator[Sequence[str]]:
    """Yield a sequence that holds the last line which this logger wrote meanwhile at INFO or above; empty for none."""
    lines: deque[str] = deque(maxlen=1)
    logger, keeping = logging.getLogger(name), _Keeping(lines)
    before = logger.level
    logger.addHandler(keeping)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.setLevel(before)
        logger.removeHandler(keeping)
