"""Errors of signed tokens: a code for programs, a sentence for people, and the words of the challenge (RFC 6750)."""

from typing import Final

from smg_node.access.identity import KEYS_RETRY_S, AccessError
from smg_node.core.errors import ErrorKind

SHOWN_MAX: Final = 128
INSUFFICIENT: Final = 'error="insufficient_scope"'


def refused(message: str, code: str, description: str) -> AccessError:
    """Return the 401 for a token that is not good. `description` is a fixed text without quotes."""
    return AccessError(
        ErrorKind.UNAUTHENTICATED,
        message,
        code=code,
        challenge=f'error="invalid_token", error_description="{description}"',
    )


def malformed(message: str) -> AccessError:
    """Return the 401 for what is no token at all, or has a claim of the wrong kind."""
    return refused(message, "invalid_token", "malformed")


def worthless(message: str, code: str) -> AccessError:
    """Return the 403 for a good token that gives its bearer nothing here."""
    return AccessError(ErrorKind.FORBIDDEN, message, code=code, challenge=INSUFFICIENT)


def unreachable(alias: str, *, had: bool) -> AccessError:
    """Return the 503 for a token whose issuer's keys are not here; `had`: they were, and are too old by now."""
    told = "are too old, and it cannot be reached" if had else "could not be fetched yet"
    return AccessError(
        ErrorKind.OVERLOADED,
        f"the keys of the issuer {alias!r} {told}",
        code="issuer_unreachable",
        challenge="",
        retry_after_s=KEYS_RETRY_S,
    )


def shown(value: object) -> str:
    """Return a value of a token as errors show it: short and printable."""
    text = repr(value) if isinstance(value, str | int | float | bool) else type(value).__name__
    cut = text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
    return "".join(one if one.isprintable() else "?" for one in cut)
