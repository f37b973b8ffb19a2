"""Keyring: seals and opens packets that only members can make, read or repeat (AES-256-GCM).

    datagram = header 32 | body, encrypted | tag 16        AES-256-GCM

Each life (boot) of each sender has a packet key of its own, derived from the ring's key, the cluster's
label, the sender's tag and the boot; the nonce is the packet's counter. Two nodes never share a packet
key, so no nonce is ever used twice under one. Within a process it is the counter that guarantees it: it
belongs to the `Keyring`, never goes back, and goes on counting whatever boot or primary key comes next.
It begins at the machine's uptime and a random number, so that even a second `Keyring` made by mistake for
the same boot counts elsewhere, and shows as refused replays instead of breaking the cipher.

The whole header is authenticated, and so is the label (through the key). Which order the checks have:
form, flags, key, replay, tag. Only a packet that passed all of them leaves a trace here.

Without keys (*insecure*, on purpose) packets are plain, and so marked. The tag is then a checksum over
header, body and label: anybody can make one, but damage and foreign clusters are still noticed. A node
with keys refuses plain packets and a node without refuses sealed ones.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from secrets import randbits
from struct import Struct
from typing import Final, NamedTuple, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from smg_mesh.io.security.key_files import KEYS_MAX, read_key_file, read_rotated, write_rotated
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.replay_window import Replays
from smg_mesh.io.security.ring_key import KEY_ID_BYTES, RingKey
from smg_mesh.io.security.secret_seal import open_secret, seal_secret
from smg_mesh.swim.wire import (
    HEADER_BYTES,
    MAGIC,
    PACKET_BYTES_MAX,
    SEAL_BYTES,
    VERSION,
)

FLAG_PLAIN: Final = 1
_START: Final = MAGIC + bytes((VERSION,))
_SEALED_START: Final = _START + b"\0"
_PLAIN_START: Final = _START + bytes((FLAG_PLAIN,))
_NO_KEY_ID: Final = bytes(KEY_ID_BYTES)
_CLEAR_START: Final = _SEALED_START + _NO_KEY_ID
_NO_COUNTER: Final = bytes(8)
_HEADER: Final = Struct("!4s4s8sQQ")
"""Magic, version and flags; key id; sender; boot; counter."""
_NONCE_START: Final = bytes(4)
"""A nonce has 12 bytes, a counter 8."""
_CIPHERS_MAX: Final = 1024
"""Kept ready, 2.4 KB each; making one anew costs 1.3 us."""
_COUNTER_RANDOM_BITS: Final = 31
_COUNTER_UPTIME_SHIFT: Final = 32
_CHECKSUM: Final = b"smg mesh plain"


class KeyringError(ValueError):
    """A step of a rotation that the ring does not allow; the message says why."""


class KeyringUnsavedError(OSError):
    """A step of a rotation could not be kept on disk, and was not made."""


class Fingerprints(NamedTuple):
    """Fingerprints of a ring's keys, as people may see them: 8 hexadecimal digits per key."""

    primary: str
    all: tuple[str, ...]
    """The primary first."""


class Keyring:
    """Seals and opens packets. One per process life: the counter of its packets lives here.

    Without keys it is insecure. `folder` and `began_from` say where a rotation is kept.
    `first_counter` is for runs that have to be the same again, in which nothing is secret.
    """

    def __init__(
        self,
        keys: Sequence[RingKey],
        label: str,
        *,
        folder: Path | None = None,
        began_from: str = "",
        warnings: Sequence[str] = (),
        first_counter: int | None = None,
    ) -> None:
        self._keys = tuple(keys)
        self._by_id = {key.id: key for key in keys}
        assert len(self._by_id) == len(self._keys) <= KEYS_MAX
        self._start = _SEALED_START if keys else _PLAIN_START
        self._label = label.encode()
        self._folder = folder
        self._began_from = began_from
        self.warnings = tuple(warnings)
        """What the operator should hear about the files."""
        self._checksum_key = blake2b(self._label, digest_size=32, person=_CHECKSUM).digest()
        self._counter = _first_counter() if first_counter is None else first_counter
        self._sealer: AESGCM | None = None
        self._sealer_for = b""
        """Sender and boot."""
        self._ciphers: OrderedDict[bytes, AESGCM] = OrderedDict()
        self._replays = Replays()

    @classmethod
    def insecure(cls, label: str) -> Self:
        """Return a ring without keys: plain text on purpose."""
        return cls((), label)

    @classmethod
    def from_file(cls, path: Path, label: str) -> Self:
        """Return the ring of a key file, whose rotations are not kept; `KeyFileError`."""
        return cls.load(path, None, label)

    @classmethod
    def load(cls, key_file: Path, data_dir: Path | None, label: str) -> Self:
        """Return the ring of a key file, or what a rotation kept in `data_dir` made of that very file."""
        file = read_key_file(key_file)
        rotated: tuple[RingKey, ...] = ()
        warning = ""
        if data_dir is not None:
            rotated, warning = read_rotated(data_dir, began_from=file.digest)
        return cls(
            rotated or file.keys,
            label,
            folder=data_dir,
            began_from=file.digest,
            warnings=(*file.warnings, warning) if warning else file.warnings,
        )

    @property
    def encrypted(self) -> bool:
        """Whether there are keys."""
        return bool(self._keys)

    @property
    def primary(self) -> str:
        """Fingerprint of the key that seals; empty if there are none."""
        return self._keys[0].fingerprint if self._keys else ""

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys themselves, the primary first: others are derived from them for streams."""
        return tuple(key.secret for key in self._keys)

    def fingerprints(self) -> Fingerprints:
        """Return what may be shown of the ring; empty if it is insecure."""
        shown = tuple(key.fingerprint for key in self._keys)
        return Fingerprints(shown[0] if shown else "", shown)

    def senders(self) -> int:
        """Return how many senders are remembered against replays."""
        return len(self._replays)

    def ciphers(self) -> int:
        """Return how many packet keys of others are kept ready."""
        return len(self._ciphers)

    # ── Packets ──────────────────────────────────────────────────────────────

    def seal(self, packet: bytes) -> bytes:
        """Return the datagram for a clear packet, different each time."""
        counter = self._counter
        self._counter = counter + 1
        sender_and_boot = packet[8:24]
        key_id = self._keys[0].id if self._keys else _NO_KEY_ID
        head = self._start + key_id + sender_and_boot + counter.to_bytes(8, "big")
        if not self._keys:
            written = head + packet[HEADER_BYTES:]
            return written + self._checksum(written)
        if self._sealer is None or sender_and_boot != self._sealer_for:
            self._sealer = self._keys[0].packet_cipher(self._label, sender_and_boot)
            self._sealer_for = sender_and_boot
        return head + self._sealer.encrypt(_NONCE_START + head[24:], packet[HEADER_BYTES:], head)

    def open(self, datagram: bytes) -> bytes:
        """Return the clear packet of a datagram, once; raise `Rejected`."""
        if not HEADER_BYTES + SEAL_BYTES < len(datagram) <= PACKET_BYTES_MAX:
            raise Rejected("wire")
        start, key_id, sender, boot, counter = _HEADER.unpack_from(datagram)
        if start != self._start:
            raise Rejected(_why_foreign(start))
        if key_id not in self._by_id and (self._keys or key_id != _NO_KEY_ID):
            raise Rejected("key")
        if not self._replays.is_fresh(sender, boot, counter):
            raise Rejected("replay")
        body = self._unseal(datagram) if self._keys else self._uncheck(datagram)
        self._replays.mark(sender, boot, counter)
        return _CLEAR_START + datagram[8:24] + _NO_COUNTER + body

    def _unseal(self, datagram: bytes) -> bytes:
        whose = datagram[4:24]
        known = self._ciphers.get(whose)
        cipher = known or self._by_id[whose[:4]].packet_cipher(self._label, whose[4:])
        try:
            body = cipher.decrypt(
                _NONCE_START + datagram[24:32], datagram[HEADER_BYTES:], datagram[:HEADER_BYTES]
            )
        except InvalidTag:
            raise Rejected("tag") from None
        # Kept only now: forged senders must not push out the real ones.
        self._ciphers[whose] = cipher
        self._ciphers.move_to_end(whose)
        if len(self._ciphers) > _CIPHERS_MAX:
            self._ciphers.popitem(last=False)
        return body

    def _uncheck(self, datagram: bytes) -> bytes:
        if not compare_digest(self._checksum(datagram[:-SEAL_BYTES]), datagram[-SEAL_BYTES:]):
            raise Rejected("tag")
        return datagram[HEADER_BYTES:-SEAL_BYTES]

    def _checksum(self, written: bytes) -> bytes:
        return blake2b(written, key=self._checksum_key, digest_size=SEAL_BYTES).digest()

    # ── Rotation ─────────────────────────────────────────────────────────────

    def install(self, key: bytes) -> bool:
        """Let the key open packets too; return whether it is new. `KeyringError`, `KeyringUnsavedError`."""
        self._needs_keys()
        try:
            added = RingKey(key)
        except ValueError as error:
            raise KeyringError(str(error)) from error
        known = self._by_id.get(added.id)
        if known is not None and known != added:
            raise KeyringError(
                f"another key has the fingerprint {added.fingerprint}; make a new one"
            )
        if known is not None:
            return False
        if len(self._keys) >= KEYS_MAX:
            raise KeyringError(f"the ring has {KEYS_MAX} keys already; remove one first")
        self._become((*self._keys, added))
        return True

    def use(self, fingerprint: str) -> bool:
        """Seal with that key from now on; return whether it did not before. Raises as `install` does."""
        self._needs_keys()
        key = self._find(fingerprint)
        if key is None:
            raise KeyringError(f"the ring has no key {fingerprint}; install it first")
        if key == self._keys[0]:
            return False
        self._become((key, *(other for other in self._keys if other != key)))
        return True

    def remove(self, fingerprint: str) -> bool:
        """Refuse the key from now on; return whether it was there. Raises as `install` does."""
        self._needs_keys()
        key = self._find(fingerprint)
        if key is None:
            return False
        if key == self._keys[0]:
            raise KeyringError(f"the ring seals with {fingerprint}; use another key first")
        self._become(tuple(other for other in self._keys if other != key))
        return True

    def _needs_keys(self) -> None:
        if not self._keys:
            raise KeyringError("this node is insecure: it has no keyring")

    def _find(self, fingerprint: str) -> RingKey | None:
        wanted = fingerprint.strip().lower()
        return next((key for key in self._keys if key.fingerprint == wanted), None)

    def _become(self, keys: tuple[RingKey, ...]) -> None:
        """On disk first: a step that a restart would undo was not made."""
        if self._folder is not None:
            try:
                write_rotated(self._folder, keys, began_from=self._began_from)
            except OSError as error:
                raise KeyringUnsavedError(
                    error.errno, f"the keyring was not changed, {self._folder}: {error.strerror}"
                ) from error
        self._keys = keys
        self._by_id = {key.id: key for key in keys}
        self._sealer = None
        self._ciphers.clear()

    # ── Secrets in shared state ──────────────────────────────────────────────

    def seal_secret(self, secret: bytes) -> bytes:
        """Return a secret as every member, and no other process, can
        read it. Insecure: only marked.
        """
        return seal_secret(secret, self._keys[0] if self._keys else None, self._label)

    def open_secret(self, sealed: bytes) -> bytes:
        """Return what `seal_secret` of any member got, under any key of the ring; raise `Rejected`."""
        return open_secret(sealed, self._by_id, self._label)

    def carried_keys(self) -> tuple[bytes, ...]:
        """Return the keys for what clients carry, as `carried_secrets` takes them; none without keys."""
        return tuple(key.carried_key(self._label) for key in self._keys)


def _why_foreign(start: bytes) -> str:
    if start == _PLAIN_START:
        return "plain"
    return "sealed" if start == _SEALED_START else "wire"


def _first_counter() -> int:
    """Where counting begins: later in the machine's uptime is higher, and the rest is chance."""
    uptime_s = time.monotonic_ns() // 1_000_000_000
    return (uptime_s << _COUNTER_UPTIME_SHIFT) + randbits(_COUNTER_RANDOM_BITS)
