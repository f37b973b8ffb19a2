"""Library errors: turns exceptions and Rust panics of compiled tokenizer libraries into one
SmgError.

They are given files and texts from untrusted sources. Each raises its own exceptions, and a Rust
panic arrives as a `BaseException` that no `except Exception` would see.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid

_PANIC_MODULE: Final = "pyo3_runtime"


def unusable(message: str, code: str = "tokenizer_invalid") -> SmgError:
    """Return the error for a bundle no tokenizer can be made of."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message, code=code)


def is_foreign(error: BaseException) -> bool:
    """Whether `error` is an exception or a Rust panic, and not an order to stop."""
    return isinstance(error, Exception) or type(error).__module__ == _PANIC_MODULE


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn anything thrown inside into an SmgError that begins with `what`."""
    try:
        yield
    except SmgError:
        raise
    # A library's door: its exceptions have no common base, and a panic is not even an Exception.
    except BaseException as error:
        if not is_foreign(error):
            raise
        raise unusable(f"{what}: {error}") from error


def whole_unicode(text: str) -> bytes:
    """Return `text` as UTF-8; INVALID_REQUEST for a lone surrogate, which is no character."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise not_whole(error) from error


def not_whole(error: UnicodeEncodeError) -> SmgError:
    """Return the refusal of a text with a lone surrogate."""
    return invalid(f"the text has a lone surrogate at character {error.start}")


def encode_failed(text: str, error: BaseException) -> BaseException:
    """Return what to raise when a library threw `error` at `text`."""
    if not is_foreign(error):
        return error
    whole_unicode(text)
    return invalid(f"this model's tokenizer cannot encode the text: {error}")
