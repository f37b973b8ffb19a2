"""Token command: a program of the operator that prints a token, such as a cloud's own CLI; run again when the token ends.

What it prints is in no message and on no disk. Its standard error is shown where it fails.
"""

import contextlib
import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Final

from smg_node.admin.client import AdminError

TIMEOUT_S: Final = 10.0
OUTPUT_BYTES_MAX: Final = 65_536
_ERRORS_BYTES_MAX: Final = 4_096
"""So much of its standard error is kept, the end of it."""
_SHOWN_CHARACTERS_MAX: Final = 500
_PIECE_BYTES: Final = 4_096
_FLAG: Final = "--token-command"
_OURS: Final = ("SMG_ADMIN_KEY", "SMG_KEY")


class TokenCommand:
    """A command and the token that it printed last; the token is kept in memory only."""

    def __init__(
        self, command: str, now_ms: Callable[[], int], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Take a command as a shell would write it; no shell runs it. AdminError for one that is none."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise AdminError(f"{_FLAG}: {str(error).lower()}") from None
        if not self._words:
            raise AdminError(f"{_FLAG} names no program")
        self._now_ms = now_ms
        self._timeout_s = timeout_s
        self._token = ""
        self._expires_s: float | None = None

    def token(self) -> str:
        """Return the token, of another run where there is none yet or it has ended; AdminError."""
        ends_s = self._expires_s
        if not self._token or (ends_s is not None and self._now_ms() >= ends_s * 1000):
            self.renew()
        return self._token

    def renew(self) -> None:
        """Run the program for another token; AdminError."""
        self._token = _checked(_output(self._words, self._timeout_s))
        self._expires_s = expiry_of(self._token)

    def __repr__(self) -> str:
        return f"TokenCommand({self._words[0]!r})"


def expiry_of(token: str) -> float | None:
    """Return when a signed token says that it ends, in seconds of Unix time; None for what says nothing of it.

    Nothing is verified: the node does that.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    ends = claims.get("exp") if isinstance(claims, dict) else None
    if isinstance(ends, bool) or not isinstance(ends, int | float):
        return None
    return ends if 0 < ends < 1 << 53 else None


def _checked(output: bytes) -> str:
    """Return the token that was printed, without white space around it."""
    token = output.decode("ascii", "replace").strip()
    if not token:
        raise AdminError(f"the program of {_FLAG} printed no token")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AdminError(f"the program of {_FLAG} printed something else than one token")
    return token


def _output(words: list[str], timeout_s: float) -> bytes:
    """Return what a program prints; AdminError where it fails, prints too much or takes too long."""
    environ = {name: value for name, value in os.environ.items() if name not in _OURS}
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise AdminError(f"cannot run the program of {_FLAG} ({words[0]!r}): {reason}") from None
    with process:
        try:
            output, errors = _read(process, time.monotonic() + timeout_s, timeout_s)
        finally:
            _end(process)
    if process.returncode:
        raise AdminError(
            f"the program of {_FLAG} failed with exit code {process.returncode}{_shown(errors)}"
        )
    return output


def _read(
    process: "subprocess.Popen[bytes]", ends_s: float, timeout_s: float
) -> tuple[bytes, bytes]:
    """Read both streams to their ends, and wait for the program's."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = b"", b""
    with selectors.DefaultSelector() as streams:
        streams.register(process.stdout, selectors.EVENT_READ)
        streams.register(process.stderr, selectors.EVENT_READ)
        while streams.get_map():
            ready = streams.select(max(0.0, ends_s - time.monotonic()))
            if not ready:
                raise AdminError(
                    f"the program of {_FLAG} took longer than {timeout_s:g} s{_shown(errors)}"
                )
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE_BYTES)
                if not piece:
                    streams.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    output += piece
                else:
                    errors = (errors + piece)[-_ERRORS_BYTES_MAX:]
            if len(output) > OUTPUT_BYTES_MAX:
                raise AdminError(
                    f"the program of {_FLAG} printed more than {OUTPUT_BYTES_MAX} bytes"
                )
    try:
        process.wait(max(0.0, ends_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise AdminError(f"the program of {_FLAG} took longer than {timeout_s:g} s") from None
    return output, errors


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program that still runs, and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _shown(errors: bytes) -> str:
    """Return what a program said on its standard error, on one line."""
    said = " ".join(errors.decode("utf-8", "replace").split())
    printable = "".join(one for one in said if one.isprintable())
    return f": {printable[-_SHOWN_CHARACTERS_MAX:]}" if printable else ""
