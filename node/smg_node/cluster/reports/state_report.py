"""State report: replicated state held by this node, and whether the other members hold the same."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.core.errors import SmgError
from smg_node.http.ports.shared_state import NamespaceView, PeerState, StateView

STATE: Final = "node.state"
ASK_S: Final = 2.0
_ASKED_AT_ONCE_MAX: Final = 16


class NamespaceState(Protocol):
    """One kind of replicated state; see `smg_mesh.shared`."""

    @property
    def digest(self) -> str:
        """Hexadecimal; equal for equal contents."""
        ...

    @property
    def entries(self) -> int:
        """Number of live keys."""
        ...

    @property
    def size_bytes(self) -> int:
        """Approximate size of its documents."""
        ...

    @property
    def documents(self) -> int:
        """Number of documents in use."""
        ...

    @property
    def epoch(self) -> int:
        """The latest epoch of any of them."""
        ...


class Holdings(Protocol):
    """Port to all replicated state of this node; `smg_mesh.shared.Shared` is it."""

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    def state(self) -> Mapping[str, NamespaceState]:
        """Return the state of each kind, by name."""
        ...

    def digest(self) -> str:
        """Return hexadecimal digits over everything; equal for equal contents."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members, this node's own too."""
        ...


class StateReport:
    """Reports the replicated state, here and with `peers` elsewhere."""

    def __init__(self, name: str, shared: Holdings, mesh: MemberQueries | None) -> None:
        self._name = name
        self._shared = shared
        self._mesh = mesh
        if mesh is not None:
            mesh.answer(STATE, self._asked)

    async def state(self, *, peers: bool) -> StateView:
        """Return it; with `peers` compare with every living member, within 2 s."""
        members = await self._compare() if peers and self._mesh is not None else {}
        namespaces = [
            NamespaceView(
                name=name,
                digest=state.digest,
                entries=state.entries,
                bytes=state.size_bytes,
                documents=state.documents,
                epoch=state.epoch,
            )
            for name, state in sorted(self._shared.state().items())
        ]
        return StateView(self._name, self._shared.held, self._shared.digest(), namespaces, members)

    async def _compare(self) -> Mapping[str, PeerState]:
        others = sorted(name for name in self._shared.living() if name != self._name)
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)

        async def look(name: str) -> PeerState:
            async with turns:
                return await self._look(name)

        said = await asyncio.gather(*map(look, others))
        return dict(zip(others, said, strict=True))

    async def _look(self, name: str) -> PeerState:
        assert self._mesh is not None
        try:
            said = await query_member(self._mesh, name, STATE, deadline_s=ASK_S)
            theirs = msgspec.json.decode(said, type=dict[str, str])
        except SmgError as error:
            return PeerState(same=False, error=error.message)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return PeerState(same=False, error="it says nothing that is understood here")
        mine, theirs = self._digests(), _said(theirs)
        differs = tuple(key for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key))
        return PeerState(same=not differs, differs=differs)

    def _digests(self) -> dict[str, str]:
        return _said({name: state.digest for name, state in self._shared.state().items()})

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer that wants to compare."""
        return msgspec.json.encode(self._digests())


def _said(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that say something: what is empty, or never the same anywhere, has zeros or no name at all."""
    return {name: digest for name, digest in digests.items() if digest.strip("0")}
