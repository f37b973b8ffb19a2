"""Certificate watch: takes certificates anew when their files change, and keeps the old ones while they are wrong.

Certificate and key are replaced one after the other, and volumes of secrets by exchanging a link: a
file's time, size and inode, with links followed, tell one version from the next.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from smg_node.http.tls.server_contexts import ServerCertificates, TlsFilesError, day_of, load
from smg_node.http.tls_options import TlsOptions

LOOK_INTERVAL_S: Final = 1.0
_LOOKS_TO_RETRY: Final = 10
"""Refused files are tried again after so many looks: what was wrong with them may end without a change of theirs, such as
a certificate that was not valid yet, a key that this user may not read, or a process without free file descriptors."""
_OTHERS: Final = 0o007
_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]
_log: Final = logging.getLogger("smg_node.http")


class Changes(Protocol):
    """Counts what becomes of changed files."""

    def certificates_taken(self) -> None:
        """Count certificates that were taken anew."""
        ...

    def certificates_refused(self) -> None:
        """Count changed files that will not do."""
        ...


class CertificateWatch:
    """The certificates in force; `open`, then `run` until cancelled."""

    def __init__(
        self,
        options: TlsOptions,
        changes: Changes,
        *,
        now_s: Callable[[], float],
        look_interval_s: float = LOOK_INTERVAL_S,
    ) -> None:
        self._options = options
        self._changes = changes
        self._now_s = now_s
        self._interval_s = look_interval_s
        self._stamp: _Stamp | None = None
        self._complaint = ""
        self._said = ""
        self._looks_to_retry = 0
        self._current: ServerCertificates | None = None

    @property
    def current(self) -> ServerCertificates:
        """The certificates in force; the same object until others were taken."""
        assert self._current is not None, "the watch is not open"
        return self._current

    def expiries(self) -> Mapping[str, float]:
        """Return how many seconds each pair's certificate is still valid; none before `open`."""
        if self._current is None:
            return {}
        now_s = self._now_s()
        return {name: end_s - now_s for name, end_s in self._current.expires_s.items()}

    async def open(self) -> None:
        """Read the files for the first time; TlsFilesError if they will not do.

        A certificate that is not valid today is shown all the same, with a warning: without it the
        node would not come up at all.
        """
        stamp = self._seen()
        self._current = await asyncio.to_thread(load, self._options)
        self._stamp = stamp
        self._warn_of_keys()
        if name := self._current.invalid_at(self._now_s()):
            _log.warning(
                "the certificate %s is valid from %s to %s only: clients will refuse it",
                self._options.pairs[name].certificate,
                day_of(self._current.begins_s[name]),
                day_of(self._current.expires_s[name]),
            )

    async def run(self) -> None:
        """Look at the files again and again."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.look()

    async def look(self) -> None:
        """Take the files if they have changed and will do, or were refused and will do by now."""
        stamp = self._seen()
        changed = stamp != self._stamp
        if not (changed or self._complaint):
            return
        self._looks_to_retry -= 1
        if not changed and self._looks_to_retry > 0:
            return
        # What changes while it is read is seen as a change the next time.
        self._stamp = stamp
        try:
            found = await asyncio.to_thread(load, self._options)
            self._check(found)
        except TlsFilesError as error:
            self._refuse(str(error), changed=changed)
            return
        self._complaint = self._said = ""
        self._current = found
        self._changes.certificates_taken()
        soonest = min(found.expires_s, key=found.expires_s.__getitem__)
        _log.info(
            "took new certificates of the listeners; the first one to expire does so at %s",
            day_of(found.expires_s[soonest]),
        )

    def _refuse(self, complaint: str, *, changed: bool) -> None:
        """Say what is wrong, once, if it is not over by the next look; the files are tried again later."""
        self._complaint = complaint
        if changed:
            # One of a pair may have been replaced and the other not yet: nothing that anybody need be told of.
            self._said = ""
            self._looks_to_retry = 1
            return
        self._looks_to_retry = _LOOKS_TO_RETRY
        if self._said != complaint:
            self._said = complaint
            self._changes.certificates_refused()
            _log.warning("kept the old certificates of the listeners: %s", complaint)

    def _check(self, found: ServerCertificates) -> None:
        """Refuse certificates that are not valid now, while the old ones are."""
        now_s = self._now_s()
        if (name := found.invalid_at(now_s)) and not self.current.invalid_at(now_s):
            begins, ends = day_of(found.begins_s[name]), day_of(found.expires_s[name])
            path = self._options.pairs[name].certificate
            raise TlsFilesError(f"{path} is valid from {begins} to {ends} only")

    def _seen(self) -> _Stamp | None:
        """Return what tells one version of the files from another; None if one is missing."""
        try:
            found = [os.stat(path) for path in self._options.files]
        except OSError:
            return None
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)

    def _warn_of_keys(self) -> None:
        for pair in self._options.pairs.values():
            try:
                mode = os.stat(pair.key).st_mode
            except OSError:
                continue
            if mode & _OTHERS:
                _log.warning(
                    "everybody on this machine may read the private key %s (mode %o)",
                    pair.key,
                    mode & 0o777,
                )
