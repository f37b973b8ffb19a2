"""Control-only stand-in in a data process, for parts that only its control process has."""

from typing import Any, Final, NoReturn


class ControlOnly:
    """Raises on every use: the request should have been passed on, which is a mistake of ours."""

    def __getattr__(self, name: str) -> Any:
        def ask(*_of: object, **_with: object) -> NoReturn:
            raise AssertionError(f"{name} is asked of the control process")

        return ask


ABSENT: Final[Any] = ControlOnly()
"""It has no state: one for all."""
