"""Stands in a data process for what only its control process has, and what is asked there."""

from typing import Any, Final, NoReturn


class ControlOnly:
    """Whatever it is asked, the request should have been passed on: that is a mistake of ours."""

    def __getattr__(self, name: str) -> Any:
        def ask(*_of: object, **_with: object) -> NoReturn:
            raise AssertionError(f"{name} is asked of the control process")

        return ask


ABSENT: Final[Any] = ControlOnly()
"""It has no state: one for all."""
