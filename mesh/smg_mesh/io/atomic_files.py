"""Atomic files: there whole or not at all, also if the power fails; and
folders locked by one process.
"""

import fcntl
import os
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Put `content` where `path` is, whole or not at all, also if the power fails; mode 0600."""
    replace_file(path, content)
    sync_folder(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Do all of `write_durably` but the folder's part: for many files, and `sync_folder` once after them."""
    new = path.with_name(path.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            written = 0
            while written < len(content):
                written += os.write(descriptor, content[written:])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make sure that the folder's names outlive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_file(path: Path) -> int | None:
    """Return a descriptor that holds the lock until it is closed; None if another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    return lock
