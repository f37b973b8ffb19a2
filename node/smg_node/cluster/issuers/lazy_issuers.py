"""Lazy issuers of one process: keys of the issuers whose tokens are taken, made where at least one is configured.

A node without issuers imports nothing of them and keeps four references here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from smg_node.access.identity import Authenticator
from smg_node.core.ports import Clock, Rng

if TYPE_CHECKING:
    from smg_mesh.shared import IssuerKeySet
    from smg_node.access.tokens.issuer import Issuer
    from smg_node.cluster.issuers.access_service import ClusterAccess, IssuerParts
    from smg_node.cluster.issuers.introspection import Introspections
    from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
    from smg_node.cluster.issuers.key_fetches import KeyFetches
    from smg_node.cluster.issuers.key_ports import AccessHoldings, FetchedKeys
    from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys
    from smg_node.cluster.membership.member_query import MemberQueries
    from smg_node.config.sections.auth import Auth
    from smg_node.telemetry.metrics.meters import Meters

SECRET_BYTES: Final = 32

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], bool]
Want: TypeAlias = "Callable[[str], asyncio.Future[None] | None]"


class IssuerState(Protocol):
    """Port to the shared state of a process, as far as issuers go."""

    @property
    def access(self) -> "AccessHoldings":
        """Keys and denials."""
        ...

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members."""
        ...


class LazyIssuers:
    """Issuers of one process of the node called `node`, as its settings `auth` name them."""

    def __init__(self, node: str, auth: "Auth", clock: Clock, rng: Rng, meters: "Meters") -> None:
        self._node: Final = node
        self._auth: Final = auth
        self._clock: Final = clock
        self._rng: Final = rng
        self._meters: Final = meters
        self._issuers: Mapping[str, Issuer] | None = None
        self._state: IssuerState | None = None
        self._keys: SharedIssuerKeys | None = None
        self._fetches: KeyFetches | None = None
        self._introspections: Introspections | None = None
        self._tasks: IssuerTasks | None = None

    def __bool__(self) -> bool:
        """Whether any issuer is configured."""
        return bool(self._auth.issuers)

    # ── Being built ──────────────────────────────────────────────────────────

    def connect(self, state: IssuerState, mesh: "MemberQueries | None") -> None:
        """Fetch and share keys, together with other nodes; for the process that writes the shared state."""
        self._state = state
        if not self:
            return
        from smg_node.cluster.issuers.key_fetches import KeyFetches

        self._fetches = KeyFetches(
            self._node,
            self.issuers,
            state.access.keys,
            _fetch,
            clock=self._clock,
            rng=self._rng,
            living=state.living,
            held=lambda: state.held,
            mesh=mesh,
        )
        self._build(state, self._fetches.want)
        from smg_node.cluster.issuers.issuer_metrics import watch_issuers

        parts = self.parts()
        assert parts is not None, "they are built"
        watch_issuers(self._meters, self.issuers, state.access, parts, self._clock.now_ms)

    def follow(self, state: IssuerState, make_want: Callable[[Spawn], Want]) -> None:
        """Go by what the control process shares; `make_want` returns what lets it fetch."""
        self._state = state
        if self:
            self._build(state, make_want(self._spawn))

    def _build(self, state: IssuerState, want: Want) -> None:
        from smg_node.access.tokens.key_set import read_key_set
        from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
        from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys

        self._tasks = IssuerTasks()
        self._keys = SharedIssuerKeys(
            self.issuers,
            state.access.keys,
            state.access.denials,
            want,
            read_key_set,
            self._clock.now_ms,
        )
        if any(one.introspection is not None for one in self.issuers().values()):
            from smg_node.cluster.issuers.introspection import Introspections
            from smg_node.cluster.issuers.issuer_metrics import watch_introspections

            self._introspections = Introspections(
                self._secret(), self._clock.now_ms, self._spawn, _ask_about
            )
            watch_introspections(self._meters, self._introspections)

    def authenticator(self, keys: Authenticator) -> Authenticator:
        """Return what knows the tokens of the issuers too; `keys` itself while there are none."""
        if self._keys is None:
            return keys
        from smg_node.access.authenticators import Authenticators
        from smg_node.access.tokens.opaque_tokens import opaque_of
        from smg_node.access.tokens.token_authenticator import TokenAuthenticator
        from smg_node.access.tokens.verified_tokens import VerifiedTokens

        issuers, denied = self.issuers(), self._keys.denied
        tokens = TokenAuthenticator(
            list(issuers.values()),
            self._keys,
            VerifiedTokens(self._secret()),
            self._clock.now_ms,
            denied,
        )
        asked = self._introspections
        opaque = None if asked is None else opaque_of(issuers, asked, denied)
        return Authenticators(keys, tokens, opaque)

    # ── Being used ───────────────────────────────────────────────────────────

    def issuers(self) -> "Mapping[str, Issuer]":
        """Return the configured issuers by name."""
        if self._issuers is None:
            from smg_node.access.tokens.issuer_settings import issuers_of

            self._issuers = {one.alias: one for one in issuers_of(self._auth)} if self else {}
        return self._issuers

    def want(self, alias: str) -> "asyncio.Future[None] | None":
        """Return what is done once a fetch for an unknown key has ended; None where none may be made now."""
        return None if self._fetches is None else self._fetches.want(alias)

    def held(self, alias: str) -> "IssuerKeySet | None":
        """Return the keys of an issuer as they are shared."""
        return None if self._state is None else self._state.access.keys.get(alias)

    def service(self) -> "ClusterAccess":
        """Return the service of issuers and denials; imported with the first request for it."""
        from smg_node.cluster.issuers.access_service import ClusterAccess

        assert self._state is not None, "the process that answers has the shared state"
        return ClusterAccess(self.issuers, self._state.access, self.parts(), self._clock.now_ms)

    def parts(self) -> "IssuerParts | None":
        """Return what a process that fetches has of its issuers; None without any."""
        if self._keys is None or self._fetches is None:
            return None
        from smg_node.cluster.issuers.access_service import IssuerParts

        return IssuerParts(self._keys, self._fetches, self._introspections)

    async def run(self) -> None:
        """Fetch, follow and ask, until cancelled; nothing of it where no issuer is configured."""
        if self._tasks is None or self._keys is None:
            await asyncio.get_running_loop().create_future()
            return
        loops = [self._keys.run]
        if self._fetches is not None:
            loops.append(self._fetches.run)
        await self._tasks.run(loops)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        assert self._tasks is not None, "there are issuers"
        return self._tasks.spawn(work)

    def _secret(self) -> bytes:
        from secrets import token_bytes

        return token_bytes(SECRET_BYTES)


async def _fetch(issuer: "Issuer") -> "FetchedKeys":
    # With the first fetch, in a thread: the client is 24 MB and a quarter of a second.
    module = await asyncio.to_thread(import_module, "smg_node.cluster.issuers.key_fetch")
    fetched: FetchedKeys = await module.fetch_keys(issuer)
    return fetched


async def _ask_about(issuer: "Issuer", token: str) -> bytes:
    module = await asyncio.to_thread(import_module, "smg_node.cluster.issuers.introspection_call")
    answer: bytes = await module.ask_about(issuer, token)
    return answer
