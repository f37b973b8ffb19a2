"""Access service: answers the HTTP surface about issuers of tokens and their keys, and denies subjects."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from smg_mesh.shared import AccessDefinition, Denial, StateError
from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.issuer_definitions import (
    CODE,
    ISSUERS_MAX,
    NodeTerms,
    checked_definition,
)
from smg_node.cluster.issuers.key_ports import AccessHoldings
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.access import (
    DenialChange,
    DenialView,
    IssuerChange,
    IssuerKeyView,
    IssuerView,
    SkippedKeyView,
)
from smg_node.http.ports.shared_state import StaleValueError

if TYPE_CHECKING:
    from smg_node.cluster.issuers.introspection import Introspections
    from smg_node.cluster.issuers.key_fetches import KeyFetches
    from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys


class IssuerParts:
    """What one process with issuers has of them: their keys, the fetches, and the calls about opaque tokens."""

    def __init__(
        self,
        keys: "SharedIssuerKeys",
        fetches: "KeyFetches",
        introspections: "Introspections | None",
    ) -> None:
        self.keys: Final = keys
        self.fetches: Final = fetches
        self.introspections: Final = introspections


class IssuersHere(Protocol):
    """Port to the issuers of this process."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Definitions of the cluster that are not followed here, and why."""
        ...

    def issuers(self) -> Mapping[str, Issuer]:
        """Return the issuers by name."""
        ...

    def own(self) -> Mapping[str, Collection[str]]:
        """Return the issuers of this node's own settings by name: the roles that their tokens may have."""
        ...

    def terms(self) -> NodeTerms:
        """Return what those settings say of definitions of the cluster."""
        ...

    def parts(self) -> IssuerParts | None:
        """Return what there is of them; None without any."""
        ...


class ClusterAccess:
    """Issuers and denials of the cluster, as this node sees and changes them."""

    def __init__(self, here: IssuersHere, state: AccessHoldings, now_ms: Callable[[], int]) -> None:
        self._here: Final = here
        self._issuers: Final = here.issuers
        self._state: Final = state
        self._now_ms: Final = now_ms

    def issuers(self) -> Sequence[IssuerView]:
        """Return the configured issuers; see `AccessService`."""
        parts = self._here.parts()
        if parts is None:
            return ()
        shared = {one.alias: one for one in self._state.definitions.all()}
        return [
            _issuer_view(one, parts, shared.get(alias))
            for alias, one in sorted(self._issuers().items())
        ]

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by name."""
        return dict(sorted(self._here.unreadable.items()))

    def check(self, alias: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a definition as it is kept; see `AccessService`. Slow: for a thread."""
        return checked_definition(alias, body, self._here.terms())

    def define(
        self, alias: str, checked: Mapping[str, Any], *, version: int | None
    ) -> IssuerChange:
        """Define an issuer on all nodes; see `AccessService`."""
        before = self._view_of(alias)
        others = [one for one in self._issuers().values() if one.alias != alias]
        if len(others) >= ISSUERS_MAX:
            raise invalid(f"there are {ISSUERS_MAX} issuers already", "name", CODE)
        same = next((one.alias for one in others if one.issuer == checked["issuer"]), None)
        if same is not None:
            raise invalid(f"it is the same issuer as {same}", "issuer", CODE)
        asked = next((one.alias for one in others if one.introspection is not None), None)
        if asked is not None and checked.get("introspection", {}).get("url"):
            raise invalid(
                f"{asked} has an introspection already, and tokens that cannot be read do not say whose they are",
                "introspection",
                CODE,
            )
        self._write(alias, checked, version)
        return IssuerChange(before, self._view_of(alias))

    def worth(self, alias: str) -> Collection[str]:
        """Return the roles that tokens of this name may have by now, or again; see `AccessService`."""
        # Those of its own settings count again without a definition, which others may follow if this node does not.
        held, roles = self._state.definitions.get(alias), set(self._here.own().get(alias, ()))
        mapped = held.value.get("role_map") if held and isinstance(held.value, dict) else None
        if isinstance(mapped, dict):
            roles.update(role for role in mapped.values() if isinstance(role, str))
        return roles

    def is_last(self, alias: str) -> bool:
        """Whether the cluster defines this issuer, and no other; see `AccessService`."""
        return [one.alias for one in self._state.definitions.all()] == [alias]

    def mapped(self) -> Mapping[str, Collection[str]]:
        """Return the roles that tokens of each issuer may have here; see `AccessService`."""
        return {alias: {role for _, role in one.role_map} for alias, one in self._issuers().items()}

    @property
    def has_own(self) -> bool:
        """Whether this node's own settings have an issuer; see `AccessService`."""
        return bool(self._here.own())

    def remove(self, alias: str, *, version: int | None) -> IssuerChange:
        """Take the cluster's definition away; see `AccessService`."""
        if self._state.definitions.get(alias) is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"the cluster defines no issuer {alias[:64]!r}; those of a node's own settings are taken out of there",
                where="name",
                code="issuer_not_found",
            )
        before = self._view_of(alias)
        self._write(alias, None, version)
        if alias not in self._issuers():
            # A node that still has it in its own settings fetches them again.
            self._state.keys.remove(alias)
        return IssuerChange(before, self._view_of(alias))

    def _write(self, alias: str, value: object, version: int | None) -> None:
        try:
            if value is None:
                self._state.definitions.remove(alias, version=version)
            else:
                self._state.definitions.set(alias, value, version=version)
        except StateError as error:
            if error.reason == "stale":
                held = self._state.definitions.get(alias)
                now = "0" if held is None else str(held.version)
                raise StaleValueError(f"issuer {alias}", now, self._view_of(alias)) from error
            if error.reason == "too_large":
                raise invalid(str(error), None, "issuer_too_large") from error
            code = f"state_{error.reason}"
            raise SmgError(ErrorKind.OVERLOADED, str(error), code=code) from error

    def _view_of(self, alias: str) -> IssuerView | None:
        return next((one for one in self.issuers() if one.name == alias), None)

    def denials(self) -> Sequence[DenialView]:
        """Return all denials; see `AccessService`."""
        return [self._view(one) for one in self._state.denials.all()]

    def deny(self, issuer: str, subject: str, *, before_ms: int | None, for_s: int) -> DenialChange:
        """Refuse a subject's tokens on all nodes; see `AccessService`."""
        if issuer not in self._issuers():
            known = ", ".join(sorted(self._issuers())) or "none"
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no issuer is called {issuer[:64]!r} here; known: {known}",
                where="issuer",
                code="issuer_not_found",
            )
        before = self._state.denials.get(issuer, subject)
        now_ms = self._now_ms()
        made = Denial(issuer, subject, now_ms + for_s * 1000, before_ms or 0, now_ms)
        try:
            self._state.denials.put(made, wall_ms=now_ms)
        except StateError as error:
            raise SmgError(ErrorKind.CONFLICT, str(error), code=f"state_{error.reason}") from error
        except ValueError as error:
            raise invalid(f"subject is none that a token can have: {error}", "subject") from error
        return DenialChange(None if before is None else self._view(before), self._view(made))

    def undo(self, issuer: str, subject: str) -> DenialChange:
        """Refuse them no longer; see `AccessService`."""
        try:
            before = self._state.denials.remove(issuer, subject)
        except LookupError:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"nothing is denied to {subject[:128]!r} of {issuer[:64]!r}",
                where="subject",
                code="denial_not_found",
            ) from None
        return DenialChange(self._view(before), None)

    def _view(self, one: Denial) -> DenialView:
        return DenialView(
            issuer=one.alias,
            subject=one.subject,
            before_ms=one.before_ms or None,
            until_ms=one.until_ms,
            made_ms=one.made_ms,
            active=self._now_ms() < one.until_ms,
        )


def _issuer_view(issuer: Issuer, parts: IssuerParts, shared: AccessDefinition | None) -> IssuerView:
    shown, fetch = parts.keys.held(issuer.alias), parts.fetches.view(issuer.alias)
    keys = parts.keys.shown(issuer.alias)
    asked = parts.introspections if issuer.introspection is not None else None
    return IssuerView(
        name=issuer.alias,
        issuer=issuer.issuer,
        state=parts.keys.state(issuer.alias),
        keys=[IssuerKeyView(one.kid, one.algorithms) for one in keys.keys],
        skipped=[SkippedKeyView(one.kid, one.kind, one.reason) for one in keys.skipped],
        fetched_ms=None if shown is None else shown.fetched_ms,
        fetched_by="" if shown is None else shown.node,
        good_until_ms=None
        if shown is None
        else shown.fetched_ms + round(issuer.keys_max_age_s * 1000),
        refreshed_by=parts.fetches.nodes(issuer.alias)[0],
        requests=fetch.requests,
        failures=fetch.failures,
        last_error=fetch.last_error,
        last_error_ms=fetch.last_error_ms,
        introspection=issuer.introspection is not None,
        introspection_error="" if asked is None else asked.last_error(issuer.alias),
        source="node" if shared is None else "cluster",
        version="0" if shared is None else str(shared.version),
        spec={} if shared is None or not isinstance(shared.value, dict) else shared.value,
    )
