"""Server user: the account a database server runs as, and a folder for its files.

A database server refuses to run as root. So under root it runs as `nobody`, in a fresh folder below
the system's temporary one, which that user owns; where `nobody` cannot read the binaries they are
copied there. No mode of an existing folder is ever changed.
"""

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class ServerError(Exception):
    """No server could be had: what was tried, and why each attempt failed."""


@dataclass(frozen=True, slots=True)
class User:
    """Account that servers run as; ids below zero: the current user."""

    uid: int = -1
    gid: int = -1

    @property
    def is_other(self) -> bool:
        """Whether it is another user than the current one."""
        return self.uid >= 0


def server_user() -> User:
    """Return the account that servers run as: `nobody` under root."""
    if os.geteuid() != 0:
        return User()
    nobody = pwd.getpwnam("nobody")
    return User(nobody.pw_uid, nobody.pw_gid)


@contextmanager
def server_folder(name: str, user: User) -> Iterator[Path]:
    """Make a fresh folder that belongs to this user, and remove it afterwards."""
    places = dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"])
    below = next((place for place in places if is_readable(Path(place), user)), None)
    if below is None:
        raise ServerError(f"nobody can enter {', '.join(places)}: set TMPDIR")
    folder = Path(tempfile.mkdtemp(prefix=f"smg-{name}-", dir=below))
    try:
        if user.is_other:
            os.chown(folder, user.uid, user.gid)
        yield folder
    finally:
        shutil.rmtree(folder)


def is_readable(path: Path, user: User) -> bool:
    """Return whether this user can reach and read a path, by the modes of it and all above it."""
    if not user.is_other:
        return os.access(path, os.R_OK)
    wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    above = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)
    return above and path.stat().st_mode & wanted == wanted


def readable_copy(trees: Sequence[Path], needed: Path, folder: Path, user: User) -> Path:
    """Return `needed`, or its copy: if the user cannot read it, all of `trees` are copied beside each other.

    `needed` is inside of the first tree.
    """
    if is_readable(needed, user):
        return needed
    copies = folder / "software"
    for tree in trees:
        shutil.copytree(tree, copies / tree.name, symlinks=True)
    for path in (copies, *copies.rglob("*")):
        if not path.is_symlink():
            os.chown(path, user.uid, user.gid)
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    return copies / trees[0].name / needed.relative_to(trees[0])
