"""Secret files: a certificate with its key, given to a library that takes only paths, without leaving it on a disk."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Let `context` show this certificate; ssl.SSLError or OSError if the two do not fit or are none."""
    with _file_of(certificate + b"\n" + key) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> bytes:
    """Refuse a key with a password, for which OpenSSL would ask on the terminal."""
    raise ValueError("the key has a password")


@contextmanager
def _file_of(text: bytes) -> Iterator[str]:
    """Yield the path of a file with that text: in memory where the system can, else one that only we may read."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("certificate", os.MFD_CLOEXEC)
        with open(number, "wb") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.NamedTemporaryFile() as file:  # its mode is 0600
        file.write(text)
        file.flush()
        yield file.name
