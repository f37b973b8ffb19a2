"""Dead letters: turns that the store refuses permanently, set aside on disk for an operator.

    spool/NODE/dead/000000000001.turn    one line of JSON, what it is and why, then a file of the spool

An operator may retry one, which makes a folder of the spool out of it, or drop it. That needs no
running node; one that runs finds such a folder within seconds.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from smg_node.history.spool import spool_format as form

FOLDER: Final = "dead"
DEAD_MAX: Final = 10_000
"""More are not set aside: then they go on waiting in the spool, which is bounded itself."""
_SUFFIX: Final = ".turn"
_LINE_BYTES_MAX: Final = 65_536
_REASON_CHARACTERS_MAX: Final = 1_000
_ENCODER: Final = msgspec.json.Encoder()


class DeadTurn(msgspec.Struct, frozen=True):
    """Description of a turn that was set aside, and the reason."""

    number: int
    tenant: str
    response_id: str
    conversation_id: str
    kind: str
    reason: str
    spooled_us: int
    dead_us: int


_DECODER: Final = msgspec.json.Decoder(DeadTurn)


class DeadTurns:
    """Dead letters in the folder of one node. Everything here blocks."""

    def __init__(self, root: Path, *, salt: Callable[[], bytes]) -> None:
        """Take the folder of the node's spool."""
        self._root: Final = root
        self._folder: Final = root / FOLDER
        self._salt: Final = salt

    def count(self) -> int:
        """Return how many there are."""
        return len(self._numbers())

    def bury(
        self, one: form.SpooledTurn, body: bytes, *, kind: str, reason: str, now_us: int
    ) -> bool:
        """Set a turn aside, synced to disk; False if there are too many already."""
        numbers = self._numbers()
        if len(numbers) >= DEAD_MAX:
            return False
        response = one.turn.response
        dead = DeadTurn(
            number=max(numbers, default=0) + 1,
            tenant=one.tenant,
            response_id=response.id,
            conversation_id=response.conversation_id,
            kind=kind,
            reason=reason[:_REASON_CHARACTERS_MAX],
            spooled_us=one.spooled_us,
            dead_us=now_us,
        )
        salt = self._salt()
        content = _ENCODER.encode(dead) + b"\n" + form.header(salt) + form.frame(body, salt)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_whole(self._path(dead.number), content)
        return True

    def all(self) -> Sequence[DeadTurn]:
        """Return all of them, in the order they were set aside; unreadable ones are left out."""
        found = []
        for number in sorted(self._numbers()):
            with contextlib.suppress(OSError, ValueError):
                found.append(self._read(number)[0])
        return found

    def retry(self, numbers: Sequence[int]) -> int:
        """Give turns back to the spool; return how many there were."""
        count = 0
        for number in numbers:
            try:
                _, content = self._read(number)
            except (OSError, ValueError):
                continue
            # Numbers are of one width, so that turns come back in the order in which they died.
            new = self._root / f".retry-{number:012d}"
            new.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_whole(new / "00000001.turns", content)
            with contextlib.suppress(FileNotFoundError):
                os.rename(new, self._root / f"retry-{number:012d}-{self._salt().hex()[:8]}")
                self.drop([number])
                count += 1
        return count

    def drop(self, numbers: Sequence[int]) -> int:
        """Delete turns; return how many there were."""
        count = 0
        for number in numbers:
            with contextlib.suppress(FileNotFoundError):
                self._path(number).unlink()
                count += 1
        return count

    def _numbers(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        names = [one.stem for one in self._folder.iterdir() if one.suffix == _SUFFIX]
        return [int(name) for name in names if name.isdecimal()]

    def _read(self, number: int) -> tuple[DeadTurn, bytes]:
        """Return the description of a turn and the spool file behind it; ValueError for anything
        else.
        """
        content = self._path(number).read_bytes()
        line, newline, rest = content.partition(b"\n")
        if not newline or len(line) > _LINE_BYTES_MAX:
            raise ValueError("it does not say what it is")
        try:
            return _DECODER.decode(line), rest
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from error

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012d}{_SUFFIX}"


def _write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically, synced to disk."""
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError:
        new.unlink(missing_ok=True)
        raise
