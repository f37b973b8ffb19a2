"""Versioned ring: the keyring as a value with a version, so that a whole cluster can agree on one.

Every change made by command raises the version by one, and a ring is taken over whole: larger versions
win, equal ones stay what they are. A node that was away finds the larger version at the first peer it
exchanges with. Changing the key file changes no version: nodes whose files differ keep what their
files say, and talk as long as they have one key in common.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_mesh.io.atomic_files import write_durably
from smg_mesh.io.security.key_files import KEYS_MAX
from smg_mesh.io.security.keyring import Fingerprints, Keyring, KeyringError, KeyringUnsavedError
from smg_mesh.io.security.ring_key import RingKey

VERSION_MAX: Final = 1 << 48
_FILE: Final = "keyring-version"
_FILE_BYTES_MAX: Final = 32
_log: Final = logging.getLogger("smg_mesh.keyring")


class VersionedRing:
    """A keyring and how often it was changed by command. `folder` None: the number is not kept."""

    def __init__(self, keyring: Keyring, folder: Path | None) -> None:
        self._keyring = keyring
        self._path = None if folder is None else folder / _FILE
        self._version = 0 if self._path is None else _read(self._path)

    @property
    def encrypted(self) -> bool:
        """Whether there are keys at all."""
        return self._keyring.encrypted

    @property
    def version(self) -> int:
        """How often the ring was changed by command; 0: it is what the key file says."""
        return self._version

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys, the primary first."""
        return self._keyring.keys()

    def fingerprints(self) -> Fingerprints:
        """Return what may be shown."""
        return self._keyring.fingerprints()

    def adopt(self, version: int, keys: Sequence[bytes]) -> bool:
        """Hold these keys, the first one primary, under that version; return whether that is a change.

        The same ring again is no change. KeyringError for a version that is not larger, and for keys
        that make no ring; KeyringUnsavedError if the disk fails, when a part may be done: the version is
        still the old one, so it can be done again.
        """
        if not 1 <= len(keys) <= KEYS_MAX or not self.encrypted:
            raise KeyringError(f"a ring has 1 to {KEYS_MAX} keys, and an insecure node none")
        wanted = _checked(keys)
        same = self.is_same([key.fingerprint for key in wanted])
        if version == self._version and same:
            return False
        if not self._version < version <= VERSION_MAX:
            raise KeyringError(f"this node holds version {self._version} of the keyring already")
        if not same:
            self._become(wanted)
        self._keep(version)
        self._version = version
        return True

    def is_same(self, fingerprints: Sequence[str]) -> bool:
        """Return whether a ring with these keys, the primary first, is this one; the rest has no order."""
        mine = self._keyring.fingerprints().all
        return mine[:1] == tuple(fingerprints[:1]) and sorted(mine) == sorted(fingerprints)

    def _become(self, wanted: Sequence[RingKey]) -> None:
        """Step by step, each of which leaves a ring that works."""
        ring = self._keyring
        names = [key.fingerprint for key in wanted]
        before, *others = ring.fingerprints().all
        for name in others:
            if name not in names:
                ring.remove(name)
        held = ring.fingerprints().all
        if names[0] not in held and len(held) == KEYS_MAX:
            ring.remove(held[-1])  # and it is installed again below
        ring.install(wanted[0].secret)
        ring.use(names[0])
        if before not in names:
            ring.remove(before)
        for key in wanted[1:]:
            ring.install(key.secret)

    def _keep(self, version: int) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(self._path, f"{version}\n".encode())
        except OSError as error:
            raise KeyringUnsavedError(
                error.errno,
                f"the version of the keyring is not kept, {self._path}: {error.strerror}",
            ) from error


def _checked(keys: Sequence[bytes]) -> list[RingKey]:
    try:
        wanted = [RingKey(key) for key in keys]
    except ValueError as error:
        raise KeyringError(str(error)) from error
    if len({key.fingerprint for key in wanted}) != len(wanted):
        raise KeyringError("two keys of the ring are one, or have one fingerprint")
    return wanted


def _read(path: Path) -> int:
    """Return the number that was kept; 0, and a word about it, if there is none that can be read."""
    try:
        with path.open("rb") as file:
            version = int(file.read(_FILE_BYTES_MAX))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        _log.warning("%s: the version of the keyring is lost, peers know it: %s", path, error)
        return 0
    return version if 0 <= version <= VERSION_MAX else 0
