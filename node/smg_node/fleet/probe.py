"""When a worker counts as up or down: so many good or bad looks in a row. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Counts looks at one worker. `down_after` bad ones in a row turn it down, `up_after` good ones up."""

    down_after: int
    up_after: int
    up: bool = False
    _run: int = 0

    def good(self) -> bool:
        """Note a good look; return whether it turned the worker up."""
        if self.up:
            self._run = 0
            return False
        self._run += 1
        if self._run < self.up_after:
            return False
        self.up, self._run = True, 0
        return True

    def bad(self) -> bool:
        """Note a bad look; return whether it turned the worker down."""
        if not self.up:
            self._run = 0
            return False
        self._run += 1
        if self._run < self.down_after:
            return False
        self.up, self._run = False, 0
        return True

    @property
    def steady(self) -> bool:
        """Whether it is up and its last look was good."""
        return self.up and not self._run

    def restart(self) -> None:
        """Start again from down, as for a worker never seen."""
        self.up, self._run = False, 0
