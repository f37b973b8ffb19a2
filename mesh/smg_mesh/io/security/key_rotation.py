"""Key rotation: changes a cluster's keyring by command, without a moment
in which two nodes cannot talk.

    install K   all nodes can open what K seals           harmless, also where a node is away
    use K       all nodes seal with K                     refused unless all have K
    remove K    no node opens what K seals                refused unless no node seals with K any more

The node that is told coordinates: it asks all living members what they hold, decides, and sends all
the whole new ring under the next version (`versioned_ring`). A node that misses it is brought level
by the next exchange with one that did not: the side that opened the exchange compares versions, and
fetches or sends. That works while old and new ring have a key in common. A node that was away until
its last key had been removed is locked out, on purpose, and its operator has to give it a key file
that the others know.

Two rings under one version (two coordinators at once, or differing key files) are a conflict:
changes are refused until one is forced, and the coordinator's ring is then that of all.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from smg_mesh.io.security.keyring import KeyringError, KeyringUnsavedError
from smg_mesh.io.security.ring_key import RingKey, parse_key
from smg_mesh.io.security.rotation_messages import (
    Adopt,
    Fetch,
    List,
    Ring,
    decode_question,
    decode_ring,
)
from smg_mesh.io.security.rotation_report import (
    Held,
    KeyringReport,
    RotationError,
    Survey,
    conflicts,
)
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.io.streams import AskError
from smg_mesh.swim.messages import Address

TOPIC: Final = "keyring"
ASKED_AT_ONCE: Final = 16
_LOST: Final = ("unreachable", "hung_up")
"""The connection ended under a question. One that was kept while its member was cut off does, and another can be made."""

Operation: TypeAlias = Literal["list", "install", "use", "remove"]
Peer: TypeAlias = tuple[str, Address]
Ask: TypeAlias = Callable[[str, Address, bytes], Awaitable[bytes]]
"""From (name, address, payload) to that member's answer about `TOPIC`; AskError."""

_log: Final = logging.getLogger("smg_mesh.keyring")


class Rotation:
    """Rotation of the ring, both ends. `changed(why)` is called after every change of it here."""

    def __init__(
        self, ring: VersionedRing, *, me: str, ask: Ask, changed: Callable[[str], None]
    ) -> None:
        self._ring = ring
        self._me = me
        self._ask = ask
        self._changed = changed
        self._turn = asyncio.Lock()
        self._told = False
        """Whether an operator's step is under way."""

    @property
    def version(self) -> int:
        """The ring's; goes into the opening of every exchange."""
        return self._ring.version

    # ── Told by the operator ─────────────────────────────────────────────────

    async def operate(
        self, operation: Operation, key: str, members: Sequence[Peer], *, force: bool = False
    ) -> KeyringReport:
        """Do one step with all of `members` (the living others) and this node; return who holds what.

        `key` is a key as in key files for `install`, and a fingerprint for `use` and `remove`. A step
        that some did not take, though it was not refused, is in the report, and can be repeated.
        RotationError, with a report: refused, nothing was changed. `force` refuses nothing for the
        sake of others.
        """
        if not self._ring.encrypted:
            raise RotationError("this node is insecure: it has no keyring")
        if self._told:
            raise RotationError("the keyring is being changed already")
        self._told = True
        try:
            # After an exchange rings are brought level, which takes a question or two: no reason to refuse.
            async with self._turn:
                return await self._step(operation, key, members, force=force)
        finally:
            self._told = False

    async def _step(
        self, operation: Operation, key: str, members: Sequence[Peer], *, force: bool
    ) -> KeyringReport:
        survey = await self._survey(members)
        if operation != "list":
            await self._catch_up(survey, members)
        report = KeyringReport.of(operation, self._me, self._held(), survey)
        if operation == "list":
            return report
        keys = self._keys_after(operation, key)
        objections = self._objections(operation, key, survey)
        if objections and not force:
            raise RotationError(f"{operation} refused: {'; '.join(objections)}", report)
        return await self._change(operation, keys, members, survey)

    async def _change(
        self, operation: Operation, keys: Sequence[bytes], members: Sequence[Peer], survey: Survey
    ) -> KeyringReport:
        settled = tuple(keys) == self._ring.keys() and not conflicts(self._held(), survey)
        version = self._ring.version + (not settled)
        try:
            if self._ring.adopt(version, keys):
                self._changed(f"{operation} by command")
        except (KeyringError, KeyringUnsavedError) as error:
            raise RotationError(f"{operation} failed here: {error}") from error
        outcomes = await self._ask_all(members, Adopt(version, list(keys)))
        return KeyringReport.of(operation, self._me, self._held(), {**survey, **outcomes})

    def _keys_after(self, operation: Operation, key: str) -> tuple[bytes, ...]:
        """Return the ring that the operation makes of this node's; RotationError if it makes none."""
        keys = self._ring.keys()
        if operation == "install":
            try:
                added = parse_key(key).secret
            except ValueError as error:
                raise RotationError(f"install: {error}") from error
            return keys if added in keys else (*keys, added)
        found = [one for one in keys if RingKey(one).fingerprint == key.strip().lower()]
        others = tuple(one for one in keys if one not in found)
        if operation == "use":
            if not found:
                raise RotationError(f"the ring has no key {key!r}: install it first")
            return (*found, *others)
        if found and found[0] == keys[0]:
            raise RotationError(f"the ring seals with {key}: use another key first")
        return others

    def _objections(self, operation: Operation, key: str, survey: Survey) -> list[str]:
        wanted = key.strip().lower()
        said = [
            f"{name} holds another ring of the same version"
            for name in conflicts(self._held(), survey)
        ]
        if operation == "install":
            return said
        for name, answer in survey.items():
            if isinstance(answer, str):
                said.append(f"{name} does not acknowledge ({answer})")
            elif operation == "use" and wanted not in answer.fingerprints:
                said.append(f"{name} has no key {wanted}: install it again")
            elif operation == "remove" and wanted == answer.fingerprints[0]:
                said.append(f"{name} seals with {wanted} still: use another key first")
        return said

    # ── Told by peers ────────────────────────────────────────────────────────

    async def answer(self, payload: bytes, caller: str) -> bytes:
        """Answer a question about `TOPIC`; AskError."""
        if not self._ring.encrypted:
            raise AskError("insecure", "this node is insecure: it has no keyring")
        question = decode_question(payload)
        if isinstance(question, Adopt):
            try:
                if self._ring.adopt(question.version, question.keys):
                    self._changed(f"told by {caller}")
            except KeyringUnsavedError as error:
                raise AskError("unsaved", str(error)) from error
            except KeyringError as error:
                raise AskError("refused", str(error)) from error
        keys = list(self._ring.keys()) if isinstance(question, Fetch) else []
        ring = Ring(self._ring.version, list(self._ring.fingerprints().all), keys)
        return msgspec.msgpack.encode(ring)

    async def level(self, name: str, address: Address, version: int) -> None:
        """After an exchange that this node opened: hold, both, the ring of the larger version. Never raises."""
        if not self._ring.encrypted or version == self._ring.version or self._turn.locked():
            return
        async with self._turn:
            try:
                if version > self._ring.version:
                    await self._fetch(name, address)
                else:
                    mine = Adopt(self._ring.version, list(self._ring.keys()))
                    await self._ask(name, address, msgspec.msgpack.encode(mine))
            except (AskError, KeyringError, KeyringUnsavedError) as error:
                _log.warning("the keyrings of this node and %s stay different: %s", name, error)

    async def _fetch(self, name: str, address: Address) -> None:
        ring = decode_ring(await self._asked(name, address, msgspec.msgpack.encode(Fetch())))
        if self._ring.adopt(ring.version, ring.keys):
            self._changed(f"version {ring.version} learnt from {name}")

    # ── Asking ───────────────────────────────────────────────────────────────

    async def _catch_up(self, survey: Survey, members: Sequence[Peer]) -> None:
        """Take over the newest ring first: a step is made from what the cluster holds, not from the past."""
        answers = [
            (answer.version, name) for name, answer in survey.items() if isinstance(answer, Held)
        ]
        newest, name = max(answers, default=(0, ""))
        if newest <= self._ring.version:
            return
        address = dict(members)[name]
        try:
            await self._fetch(name, address)
        except (AskError, KeyringError, KeyringUnsavedError) as error:
            raise RotationError(
                f"{name} has a newer keyring, which cannot be had: {error}"
            ) from error

    async def _survey(self, members: Sequence[Peer]) -> Survey:
        return await self._ask_all(members, List())

    async def _ask_all(self, members: Sequence[Peer], question: Adopt | List) -> Survey:
        """Return what each of them holds afterwards, or why that is not known."""
        places = asyncio.Semaphore(ASKED_AT_ONCE)
        payload = msgspec.msgpack.encode(question)
        survey: dict[str, Held | str] = {}

        async def ask(name: str, address: Address) -> None:
            try:
                async with places:
                    ring = decode_ring(await self._asked(name, address, payload))
            except AskError as error:
                survey[name] = f"{error.code}: {error}"
            else:
                survey[name] = Held(ring.version, tuple(ring.fingerprints))

        async with asyncio.TaskGroup() as group:
            for name, address in members:
                group.create_task(ask(name, address))
        return dict(sorted(survey.items()))

    async def _asked(self, name: str, address: Address, payload: bytes) -> bytes:
        """Return a member's answer; AskError. What a dying connection took with it is asked once more.

        No question about rings does more when it is put twice.
        """
        try:
            return await self._ask(name, address, payload)
        except AskError as error:
            if error.code not in _LOST:
                raise
        return await self._ask(name, address, payload)

    def _held(self) -> Held:
        return Held(self._ring.version, self._ring.fingerprints().all)
