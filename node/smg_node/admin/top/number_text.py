"""Number text in tables: three significant digits and a unit; a dash for what is unknown."""

from typing import Final

UNKNOWN: Final = "-"
_THOUSAND: Final = 1_000.0
_THOUSANDS: Final = ("", "k", "M", "G", "T", "P")
_KIB: Final = 1_024.0


def format_number(value: float | None) -> str:
    """Return `0`, `0.25`, `12.5`, `847`, `1.25k`, `31.2M`: a number, or so many a second."""
    return UNKNOWN if value is None else _scaled(value, _THOUSAND)


def format_bytes(value: float | None) -> str:
    """Return `512`, `98.1M`, `1.25G`: bytes, by 1,024."""
    return UNKNOWN if value is None else _scaled(value, _KIB)


def format_time(seconds: float | None) -> str:
    """Return `850us`, `45ms`, `1.25s`, `31.2s`, `900s`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.001:
        return f"{_digits(seconds * 1e6)}us"
    return f"{_digits(seconds * 1e3)}ms" if seconds < 1 else f"{_digits(seconds)}s"


def format_part(part: float | None) -> str:
    """Return `0%`, `4.5%`, `87%`, `100%`."""
    if part is None:
        return UNKNOWN
    hundredths = 100 * part
    return f"{hundredths:.1f}%" if 0 < hundredths < 9.95 else f"{hundredths:.0f}%"


def _scaled(value: float, step: float) -> str:
    size = abs(value)
    for unit in _THOUSANDS:
        # What would be rounded to a thousand is one of the next.
        if size < step - 0.5 or unit == _THOUSANDS[-1]:
            return ("-" if value < 0 else "") + _digits(size) + unit
        size /= step
    raise AssertionError("the last unit takes all")


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    text = f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")
