"""Lazy issuers of one process: keys of the issuers whose tokens are taken, made with the first one; and its roles.

Issuers and roles are those of the node's own settings, and those that operators defined for the cluster while it runs. A node
without any imports nothing of them.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.core.ports import Clock, Rng

if TYPE_CHECKING:
    from smg_mesh.shared import AccessDefinition, IssuerKeySet
    from smg_node.access.authenticators import Authenticators
    from smg_node.access.identity import Authenticator
    from smg_node.access.tokens.issuer import Issuer
    from smg_node.cluster.issuers.access_service import ClusterAccess, IssuerParts
    from smg_node.cluster.issuers.introspection import Introspections
    from smg_node.cluster.issuers.issuer_definitions import NodeTerms
    from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
    from smg_node.cluster.issuers.key_fetches import KeyFetches
    from smg_node.cluster.issuers.key_ports import AccessHoldings, FetchedKeys
    from smg_node.cluster.issuers.live_authenticator import LiveAuthenticator
    from smg_node.cluster.issuers.role_service import ClusterRoles
    from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys
    from smg_node.cluster.membership.member_query import MemberQueries
    from smg_node.config.sections.auth import Auth
    from smg_node.http.http_parts import HttpParts
    from smg_node.telemetry.metrics.meters import Meters

SECRET_BYTES: Final = 32

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], bool]
Want: TypeAlias = "Callable[[str], asyncio.Future[None] | None]"


class IssuerState(Protocol):
    """Port to the shared state of a process, as far as issuers go."""

    @property
    def access(self) -> "AccessHoldings":
        """Definitions of issuers and roles, keys and denials."""
        ...

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members."""
        ...


class LazyIssuers:
    """Issuers of one process of the node called `node`, whose own settings are `auth`."""

    def __init__(self, node: str, auth: "Auth", clock: Clock, rng: Rng, meters: "Meters") -> None:
        self._node: Final = node
        self._auth: Final = auth
        self._clock: Final = clock
        self._rng: Final = rng
        self._meters: Final = meters
        self._issuers: Mapping[str, Issuer] = {}
        self.unreadable: Mapping[str, str] = {}
        """Definitions of the cluster that are not followed here, and why."""
        self.roles = Roles(auth.roles) if auth.roles else BUILT_IN_ROLES
        self.unreadable_roles: Mapping[str, str] = {}
        self._followed_roles: Sequence[AccessDefinition] = ()
        self._state: IssuerState | None = None
        self._mesh: MemberQueries | None = None
        self._make_want: Callable[[Spawn], Want] | None = None
        self._parts: HttpParts | None = None
        self._live: LiveAuthenticator | None = None
        self._keys: SharedIssuerKeys | None = None
        self._fetches: KeyFetches | None = None
        self._introspections: Introspections | None = None
        self._tasks: IssuerTasks | None = None
        self._made: Final = asyncio.Event()

    # ── Being built ──────────────────────────────────────────────────────────

    def connect(self, state: IssuerState, mesh: "MemberQueries | None") -> None:
        """Fetch and share keys, together with other nodes; for the process that writes the shared state."""
        self._mesh = mesh
        self._begin(state)

    def follow(self, state: IssuerState, make_want: Callable[[Spawn], Want]) -> None:
        """Go by what the control process shares; `make_want` returns what lets it fetch."""
        self._make_want = make_want
        self._begin(state)

    def serve(self, parts: "HttpParts") -> None:
        """Let requests be admitted by tokens too, from the first issuer on."""
        self._parts = parts
        parts.take_roles(self.roles)
        self._install()

    def _begin(self, state: IssuerState) -> None:
        self._state = state
        state.access.definitions.watch(lambda _aliases: self.refresh())
        state.access.roles.watch(lambda _names: self.refresh())
        self.refresh()

    def refresh(self) -> None:
        """Go by the roles and issuers that there are now; what was read from the disk came without a word."""
        assert self._state is not None, "it is connected"
        self._follow_roles(self._state.access.roles.all())
        shared = self._state.access.definitions.all()
        if not shared and not self._auth.issuers and self._keys is None:
            return
        from smg_node.access.tokens.issuer_settings import issuers_of
        from smg_node.cluster.issuers.issuer_definitions import merged

        now = merged(issuers_of(self._auth, self.roles), shared, self.terms())
        if self._keys is not None and (now.issuers, now.unreadable) == (
            self._issuers,
            self.unreadable,
        ):
            return
        self._issuers, self.unreadable = now.issuers, now.unreadable
        if self._keys is None:
            self._build(self._state)
        self._prepare_introspection()
        self._renew()

    def _follow_roles(self, shared: "Sequence[AccessDefinition]") -> None:
        """Go by these definitions of roles, in place of what the node's own settings say of their names."""
        if list(shared) == list(self._followed_roles):
            return
        from smg_node.cluster.issuers.role_definitions import merged_roles

        self._followed_roles = shared
        self.roles, self.unreadable_roles = merged_roles(self._auth.roles, shared)
        if self._parts is not None:
            self._parts.take_roles(self.roles)

    def _build(self, state: IssuerState) -> None:
        from smg_node.access.tokens.key_set import read_key_set
        from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
        from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys

        self._tasks = IssuerTasks()
        want = (
            self._built_fetches(state) if self._make_want is None else self._make_want(self._spawn)
        )
        self._keys = SharedIssuerKeys(
            self.issuers,
            state.access.keys,
            state.access.denials,
            want,
            read_key_set,
            self._clock.now_ms,
        )
        if self._fetches is not None:
            from smg_node.cluster.issuers.issuer_metrics import watch_issuers

            parts = self.parts()
            assert parts is not None, "they are built"
            watch_issuers(self._meters, self.issuers, state.access, parts, self._clock.now_ms)
        self._made.set()

    def _built_fetches(self, state: IssuerState) -> Want:
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
            mesh=self._mesh,
        )
        return self._fetches.want

    def _prepare_introspection(self) -> None:
        """Make what asks about opaque tokens, with the first issuer that can be asked."""
        if self._introspections is not None:
            self._introspections.clear()
            return
        if all(one.introspection is None for one in self._issuers.values()):
            return
        from smg_node.cluster.issuers.introspection import Introspections
        from smg_node.cluster.issuers.issuer_metrics import watch_introspections

        self._introspections = Introspections(
            self._secret(), self._clock.now_ms, self._spawn, _ask_about
        )
        watch_introspections(self._meters, self._introspections)

    def _renew(self) -> None:
        """Let everybody who went by the issuers before go by those there are now."""
        if self._keys is not None:
            self._keys.look()
        if self._fetches is not None:
            self._fetches.look()
        if self._live is not None:
            self._live.refresh()
        self._install()

    def _install(self) -> None:
        if self._keys is None or self._parts is None or self._live is not None:
            return
        from smg_node.cluster.issuers.live_authenticator import LiveAuthenticator

        self._live = LiveAuthenticator(
            self._parts.authenticator,
            self._authenticators,
            self._keys,
            lambda: bool(self._issuers or self.unreadable),
        )
        self._parts.authenticator = self._live

    def _authenticators(self, keys: "Authenticator") -> "Authenticators | None":
        """Return what knows the tokens of the issuers there are now, None while there are none."""
        if self._keys is None or not self._issuers:
            return None
        from smg_node.access.authenticators import Authenticators
        from smg_node.access.tokens.opaque_tokens import opaque_of
        from smg_node.access.tokens.token_authenticator import TokenAuthenticator
        from smg_node.access.tokens.verified_tokens import VerifiedTokens

        issuers, denied = self._issuers, self._keys.denied
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
        """Return the issuers by name."""
        return self._issuers

    def own(self) -> "Mapping[str, Collection[str]]":
        """Return the issuers of this node's own settings by name: the roles that their tokens may have."""
        return {alias: set(one.role_map.values()) for alias, one in self._auth.issuers.items()}

    def terms(self) -> "NodeTerms":
        """Return what the node's own settings say of definitions of the cluster."""
        from smg_node.cluster.issuers.issuer_definitions import NodeTerms

        return NodeTerms(frozenset(self._auth.issuer_files), self.roles)

    def own_roles(self) -> "Mapping[str, Collection[str]]":
        """Return the roles of the node's own settings by name, with the permissions of each."""
        return self._auth.roles

    def urls(self) -> "Sequence[str]":
        """Return what the issuers call themselves in their tokens; none without any."""
        return [one.issuer for one in self.issuers().values()]

    def want(self, alias: str) -> "asyncio.Future[None] | None":
        """Return what is done once a fetch for an unknown key has ended; None where none may be made now."""
        return None if self._fetches is None else self._fetches.want(alias)

    def held(self, alias: str) -> "IssuerKeySet | None":
        """Return the keys of an issuer as they are shared, however old."""
        return None if self._keys is None else self._keys.held(alias)

    def service(self) -> "ClusterAccess":
        """Return the service of issuers and denials; imported with the first request for it."""
        from smg_node.cluster.issuers.access_service import ClusterAccess

        assert self._state is not None, "the process that answers has the shared state"
        return ClusterAccess(self, self._state.access, self._clock.now_ms)

    def role_service(self) -> "ClusterRoles":
        """Return the service of roles; imported with the first request for it."""
        from smg_node.cluster.issuers.role_service import ClusterRoles

        assert self._state is not None, "the process that answers has the shared state"
        return ClusterRoles(self, self._state.access.roles)

    def parts(self) -> "IssuerParts | None":
        """Return what a process that fetches has of its issuers; None without any."""
        if self._keys is None or self._fetches is None:
            return None
        from smg_node.cluster.issuers.access_service import IssuerParts

        return IssuerParts(self._keys, self._fetches, self._introspections)

    async def run(self) -> None:
        """Fetch, follow and ask from the first issuer on, until cancelled."""
        await self._made.wait()
        assert self._tasks is not None, "it is made"
        assert self._keys is not None, "it is made"
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
