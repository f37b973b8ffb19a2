"""Shared keys of issuers in one process: a `KeyProvider` over the cluster's state, whoever fetched them.

Here nothing is fetched: `want` is passed to the fetches of this node (`key_fetches`), or by a data process to those of its
control process. Keys that were fetched long ago stay good for `keys_max_age_s`, also after a restart.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from smg_mesh.shared import IssuerKeySet
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.key_provider import KeyState
from smg_node.access.tokens.key_set import KeySet
from smg_node.cluster.issuers.key_ports import SharedDenials, SharedKeySets, source_of

Wanted: TypeAlias = "Callable[[str], asyncio.Future[None] | None]"
ReadKeys: TypeAlias = Callable[[bytes], KeySet]
"""Reads a key set; ValueError for none."""
_LOOK_S: Final = 60.0
"""At least so often it is looked which keys have grown too old: clocks may jump."""


class _Read:
    """A set as it was read last."""

    __slots__ = ("digest", "held", "keys")

    def __init__(self, held: IssuerKeySet, digest: bytes, keys: KeySet) -> None:
        self.held = held
        self.digest = digest
        self.keys = keys


class SharedIssuerKeys:
    """Keys of all issuers, and whom this cluster denies; see `KeyProvider`.

    `version` is another one after each change of keys, of their state, and of denials.
    """

    def __init__(
        self,
        issuers: Callable[[], Mapping[str, Issuer]],
        keys: SharedKeySets,
        denials: SharedDenials,
        want: Wanted,
        read: ReadKeys,
        now_ms: Callable[[], int],
    ) -> None:
        # Never 0: with the first issuer it is another version than without any.
        self.version = 1
        self._issuers: Final = issuers
        self._keys: Final = keys
        self._denials: Final = denials
        self._want: Final = want
        self._read_keys: Final = read
        self._now_ms: Final = now_ms
        self._read: dict[str, _Read] = {}
        self._states: dict[str, KeyState] = {}
        self._digests: dict[str, bytes] = {}
        self._wake: Final = asyncio.Event()
        keys.watch(self._heard)
        denials.watch(self._heard_denials)

    # ── What tokens are checked with ─────────────────────────────────────────

    def keys(self, alias: str) -> KeySet | None:
        """Return the keys that tokens of an issuer may be signed with; None unless its state is `fresh`."""
        issuer = self._issuers().get(alias)
        held = None if issuer is None else self._held(issuer)
        if issuer is None or held is None or self._left_ms(issuer, held) <= 0:
            return None
        return self._known(alias, held)

    def _known(self, alias: str, held: IssuerKeySet) -> KeySet:
        read = self._read.get(alias)
        if read is not None and read.held is held:
            return read.keys
        digest = held.digest
        if read is None or read.digest != digest:
            read = self._read[alias] = _Read(held, digest, self._parsed(held))
        # Fetched again, and the same.
        read.held = held
        return read.keys

    def state(self, alias: str) -> KeyState:
        """Return whether an issuer's keys may be used."""
        issuer = self._issuers().get(alias)
        held = None if issuer is None else self._held(issuer)
        if issuer is None or held is None:
            return "never"
        return "fresh" if self._left_ms(issuer, held) > 0 else "stale"

    def want(self, alias: str, kid: str) -> "asyncio.Future[None] | None":
        """Return what is done once a fetch has ended, None where none may be made now."""
        return self._want(alias)

    def denied(self, alias: str, subject: str, issued_ms: int) -> bool:
        """Return whether tokens of a subject that were issued then, 0 for an unknown time, are refused now."""
        denial = self._denials.get(alias, subject)
        return denial is not None and denial.refuses(issued_ms, self._now_ms())

    # ── What operators see ───────────────────────────────────────────────────

    def held(self, alias: str) -> IssuerKeySet | None:
        """Return the set of an issuer as it is shared, however old."""
        issuer = self._issuers().get(alias)
        return None if issuer is None else self._held(issuer)

    def shown(self, alias: str) -> KeySet:
        """Return the keys of an issuer however old they are, and those that are skipped."""
        held = self.held(alias)
        return KeySet((), ()) if held is None else self._known(alias, held)

    # ── What changes ─────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Notice which keys grow too old, until cancelled. The library that reads keys is loaded beside the loop."""
        await asyncio.to_thread(self._read_keys, b'{"keys":[]}')
        while True:
            self._wake.clear()
            wait_s = self._look()
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def look(self) -> None:
        """See whether anything is another than before: the configured issuers are."""
        self.version += 1
        self._wake.set()

    def _look(self) -> float:
        """Count what is another than before; return in how many seconds to look again."""
        soonest_s, changed = _LOOK_S, False
        for alias, issuer in self._issuers().items():
            state = self.state(alias)
            changed = changed or self._states.get(alias) not in (None, state)
            self._states[alias] = state
            held = self._held(issuer)
            if held is not None and state == "fresh":
                soonest_s = min(soonest_s, self._left_ms(issuer, held) / 1000)
        self.version += changed
        return max(0.05, soonest_s)

    def _heard(self, aliases: Sequence[str]) -> None:
        issuers, changed = self._issuers(), False
        for alias in aliases:
            held = self._held(issuers[alias]) if alias in issuers else None
            digest = None if held is None else held.digest
            state = self.state(alias)
            if digest != self._digests.get(alias) or state != self._states.get(alias):
                changed = True
            self._states[alias] = state
            if digest is None:
                self._digests.pop(alias, None)
                self._read.pop(alias, None)
            else:
                self._digests[alias] = digest
        self.version += changed
        self._wake.set()

    def _heard_denials(self, _aliases: Sequence[str]) -> None:
        self.version += 1

    def _held(self, issuer: Issuer) -> IssuerKeySet | None:
        return self._keys.get(issuer.alias, source_of(issuer))

    def _left_ms(self, issuer: Issuer, held: IssuerKeySet) -> int:
        return held.fetched_ms + round(issuer.keys_max_age_s * 1000) - self._now_ms()

    def _parsed(self, held: IssuerKeySet) -> KeySet:
        try:
            return self._read_keys(held.document)
        except ValueError:
            # Shared by a node that reads it otherwise: none of its keys counts here.
            return KeySet((), ())
