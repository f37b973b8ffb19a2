"""Limit windows as people write them: `minute`, `10s`, `7d`."""

import re
from collections.abc import Mapping
from typing import Final

WINDOW_MS_MIN: Final = 1_000
WINDOW_MS_MAX: Final = 31 * 86_400_000
WINDOWS: Final[Mapping[str, int]] = {
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
_STEPS: Final[Mapping[str, int]] = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_WINDOW: Final = re.compile(r"([1-9][0-9]{0,6})([smhd])")


def read_window(text: str) -> int:
    """Return the milliseconds of a window that is written so; ValueError."""
    if text in WINDOWS:
        return WINDOWS[text]
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError("must be second, minute, hour or day, or such as 10s, 5m, 2h, 7d")
    window_ms = int(match[1]) * _STEPS[match[2]]
    if not WINDOW_MS_MIN <= window_ms <= WINDOW_MS_MAX:
        raise ValueError("must be from 1s to 31d")
    return window_ms


def format_window(window_ms: int) -> str:
    """Return how a window of whole seconds is written; empty for none."""
    for word, length_ms in WINDOWS.items():
        if window_ms == length_ms:
            return word
    for letter, step_ms in _STEPS.items():
        if window_ms and window_ms % step_ms == 0:
            return f"{window_ms // step_ms}{letter}"
    return ""
