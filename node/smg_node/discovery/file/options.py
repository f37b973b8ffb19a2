"""Options of the file source: a file, or a program that prints what such a file holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Either `path` or `command`, a program with its arguments, which no shell reads.

    The file is looked at every `check_interval_s`, and read again every `reread_s` even if it seems the same; the program
    is run every `run_interval_s`, and has `run_timeout_s`.
    """

    path: str = ""
    command: tuple[str, ...] = ()
    check_interval_s: float = 1.0
    reread_s: float = 30.0
    run_interval_s: float = 30.0
    run_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        """Hold what must be true of them."""
        assert bool(self.path) != bool(self.command), "a file or a program"
