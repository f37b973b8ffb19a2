"""Key port: API keys of the cluster, as the HTTP surface manages them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from smg_node.access.identity import Role

if TYPE_CHECKING:
    from smg_node.access.restrictions import Restrictions

EXPIRES_IN_MAX_S: Final = 3_650 * 86_400
"""Ten years."""
IMPORT_MAX: Final = 200
"""Keys that are taken over at once: more would keep the loop of a node for too long."""

KEYS_META: Final = "keys"
"""Under which name members say which form of keys they read."""
KEYS_FORM: Final = 2
"""The form with any role and with restrictions; before it there were three roles."""


CLOSED_META: Final = "closed"
"""Under which name members say that their own settings close them, whatever the cluster has."""


class KeyView(msgspec.Struct, frozen=True):
    """One key, without anything secret. Times are Unix milliseconds.

    `source` is where it comes from: `cluster`, or `file` for one that this node was started with. The last four are
    what it is restricted to, empty for anything.
    """

    id: str
    tenant: str
    role: Role
    name: str
    fingerprint: str
    state: Literal["active", "expired", "revoked"]
    source: Literal["cluster", "file"]
    created_ms: int | None
    expires_ms: int | None
    revoked_ms: int | None
    models: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    max_priority: str = ""
    foreign: bool = False
    """Whether another gateway made it."""


class KeyRequest(msgspec.Struct, frozen=True):
    """A key to be created; `expires_in_s` is None for one that does not expire.

    It is refused if it would end after `until_ms`, Unix milliseconds, and ends then if nothing else is said; 0 for never.
    It is made only if its tenant has fewer than
    `tenant_keys_max` keys that are not revoked, None for any number.
    """

    tenant: str
    role: Role
    name: str = ""
    expires_in_s: int | None = None
    restrictions: "Restrictions | None" = None
    until_ms: int = 0
    tenant_keys_max: int | None = None


class NewKey(msgspec.Struct, frozen=True):
    """A created key, and its text: the only time it is shown. `closes`: it is the first admin key. `form` is the one
    that a node must read to know it.
    """

    view: KeyView
    text: str
    closes: bool
    form: int = 1

    def __repr__(self) -> str:
        return f"NewKey({self.view.id})"


class RevokedKey(msgspec.Struct, frozen=True):
    """A key before and after; `opens`: no admin key is left, and the node is open again."""

    before: KeyView
    now: KeyView
    opens: bool


class ForeignKey(msgspec.Struct, frozen=True):
    """A key of another gateway that is to be good here; `sha256` is of the whole key.

    `expires_ms` is None for one that does not expire; `models` are those it may be used for, none for all.
    """

    sha256: bytes
    tenant: str
    role: Role
    name: str = ""
    expires_ms: int | None = None
    models: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ForeignKey({self.tenant}, {self.role})"


class RefusedKey(msgspec.Struct, frozen=True):
    """A key that was not taken over: which one of the list, the id it has here, and why."""

    index: int
    id: str
    code: Literal["key_differs", "key_revoked", "key_expired"]
    message: str


class KeyImport(msgspec.Struct, frozen=True):
    """Keys that were taken over, how many were there already, and those that were not; `closes` as of `NewKey`."""

    created: Sequence[KeyView]
    unchanged: int
    refused: Sequence[RefusedKey]
    closes: bool


class KeyService(Protocol):
    """The API keys of the cluster, and those of this node's file."""

    @property
    def closed(self) -> bool:
        """Whether an admin key exists, so that a key is needed."""
        ...

    @property
    def closed_everywhere(self) -> bool:
        """Whether the cluster has an admin key, so that a key is needed on all nodes."""
        ...

    def keys(self, *, revoked: bool) -> Sequence[KeyView]:
        """Return all keys, with `revoked` those too, sorted by tenant and id."""
        ...

    def key(self, key_id: str) -> KeyView | None:
        """Return a key, also one that is revoked; None if there is none."""
        ...

    def create(self, wish: KeyRequest) -> NewKey:
        """Create a key that is valid on all nodes; CONFLICT if there is no room, and `first_admin_key_restricted` for a
        restricted admin key before there is another one.
        """
        ...

    def take_over(self, wishes: Sequence[ForeignKey], *, dry_run: bool) -> KeyImport:
        """Make keys of another gateway good on all nodes; with `dry_run` say only what would come of it.

        A key that is there already stays as it is. CONFLICT if there is no room for all of them.
        """
        ...

    def revoke(self, key_id: str, *, force: bool) -> RevokedKey:
        """Revoke a key on all nodes.

        NOT_FOUND; CONFLICT `last_admin_key` for the last one unless `force`, which opens the cluster again;
        CONFLICT `key_of_file` for one that a file of this node says.
        """
        ...
