"""Identity of a request's sender: key, tenant and role, found from the API key it came with.

A key is recognised without a cache of secrets and in the same time whether its id is known or not: one
digest, one comparison in constant time. Other kinds of credentials, such as signed tokens, are another
`Authenticator`; they say the same three things.
"""

from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from smg_node.access.api_key import PREFIX, digest_of, read_key_text
from smg_node.access.foreign_key import (
    foreign_digest,
    foreign_id,
    may_be_foreign,
    sha256_of,
)
from smg_node.core.errors import ErrorKind, SmgError

if TYPE_CHECKING:
    from smg_node.access.restrictions import Restrictions

Role: TypeAlias = str
"""Name of a role; `roles.Roles` says what it may."""
KEYS_RETRY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Identity:
    """The sender of a request. `key_id` and `tenant` are empty where no credential was needed."""

    key_id: str
    tenant: str
    role: Role
    expires_ms: int = 0
    """When the key does, in Unix milliseconds; 0 for never."""
    subject: str = ""
    """Who it is, as the audit log says it; empty for the owner of an API key."""
    restrictions: "Restrictions | None" = None
    """What the credential may be used for, if not for all that its role may."""


ANYBODY: Final = Identity("", "", "user")
"""Who came without a key, where none is needed."""
LOCAL: Final = Identity("", "", "admin")
"""The operator of this machine, where no key is needed."""


class AccessError(SmgError):
    """A credential that is not good whatever keys this node learns of. `challenge` never holds text of the client."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        code: str,
        challenge: str,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(kind, message, code=code, retry_after_s=retry_after_s)
        self.challenge = challenge


class Ready(Protocol):
    """Something that will be done; it is a future of the loop, which only those that wait need to know."""

    def done(self) -> bool:
        """Return whether it is."""
        ...


class KeysWantedError(SmgError):
    """A credential cannot be judged yet: `ready` is done when what that needs is there, or cannot be had now.

    Whoever asked waits for it a moment, and asks once more. `issuer` says for whom, in the operator's words.
    """

    def __init__(self, issuer: str, ready: Ready) -> None:
        super().__init__(
            ErrorKind.OVERLOADED,
            f"the issuer {issuer!r} is being asked about this token",
            code="issuer_unreachable",
            retry_after_s=KEYS_RETRY_S,
        )
        self.issuer = issuer
        self.ready = ready


class Authenticator(Protocol):
    """Interface that maps credentials to identities."""

    @property
    def closed(self) -> bool:
        """Whether credentials are needed: an admin key exists."""
        ...

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's credentials by now."""
        ...

    @property
    def empty(self) -> bool:
        """Whether no credential exists that could be accepted."""
        ...

    @property
    def version(self) -> int:
        """Another number whenever any of the above or the owner of a credential changes; passing
        time does not count.
        """
        ...

    def expects(self, credential: str) -> bool:
        """Return whether credentials of this form exist here: a wrong one of them is refused also where none is
        needed.
        """
        ...

    def is_asked_about(self, credential: str) -> bool:
        """Return whether somebody else would be asked about a credential, and so see it."""
        ...

    def identify(self, credential: str) -> Identity:
        """Return the identity behind a credential; UNAUTHENTICATED for one that is not or no longer
        good, FORBIDDEN for one that is good and worth nothing here, KeysWantedError.
        """
        ...


class KnownKey(Protocol):
    """Record of one key. Times are Unix milliseconds, 0 means never."""

    @property
    def id(self) -> str:
        """Id of the key."""
        ...

    @property
    def tenant(self) -> str:
        """The tenant it belongs to."""
        ...

    @property
    def role(self) -> Role:
        """What its owner may do."""
        ...

    @property
    def digest(self) -> bytes:
        """Digest of its secret; empty if it is revoked."""
        ...

    @property
    def own(self) -> bool:
        """Whether it was made here."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether another gateway made it."""
        ...

    @property
    def expires_ms(self) -> int:
        """Until when it is good."""
        ...

    @property
    def restricted(self) -> bool:
        """Whether one of the four below restricts it."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Names of models it is for, `*` stands for any characters."""
        ...

    @property
    def networks(self) -> tuple[str, ...]:
        """Networks it may be used from."""
        ...

    @property
    def routes(self) -> tuple[str, ...]:
        """APIs it is for."""
        ...

    @property
    def max_priority(self) -> str:
        """The most urgent class it may claim; empty for any."""
        ...


class KeySource(Protocol):
    """Interface to all keys there are."""

    @property
    def closed(self) -> bool:
        """Whether an admin key exists."""
        ...

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's keys by now."""
        ...

    @property
    def version(self) -> int:
        """Another number after every change of the keys."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether there is a key of another gateway."""
        ...

    def get(self, key_id: str) -> KnownKey | None:
        """Return a key, good or not."""
        ...

    def now_ms(self) -> int:
        """Return the wall clock."""
        ...

    def __len__(self) -> int:
        """Return the number of keys."""
        ...


class KeyAuthenticator:
    """Authenticator of API keys."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = self.source = keys
        self._dummy = digest_of("nobody")
        # By the id of a key, with the record it was made of: making one costs more than finding it.
        self._identities: dict[str, tuple[KnownKey, Identity]] = {}

    @property
    def closed(self) -> bool:
        """Whether an admin key exists."""
        return self._keys.closed

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's keys by now."""
        return self._keys.settled

    @property
    def empty(self) -> bool:
        """Whether there is no key at all."""
        return not len(self._keys)

    @property
    def version(self) -> int:
        """Another number after every change of the keys."""
        return self._keys.version

    def expects(self, credential: str) -> bool:
        """Return whether there are keys of this form."""
        if credential.startswith(PREFIX):
            return not self.empty
        return self._keys.foreign and may_be_foreign(credential)

    def is_asked_about(self, credential: str) -> bool:
        """Return whether somebody else would be asked: nobody is."""
        return False

    def identify(self, credential: str) -> Identity:
        """Return the identity behind a key; UNAUTHENTICATED otherwise, with no part of the key in
        the message.
        """
        said = read_key_text(credential)
        if said is None:
            return self._foreign(credential)
        key = self._keys.get(said[0])
        digest = digest_of(said[1])
        same = compare_digest(digest, self._dummy if key is None else key.digest)
        if key is None or not same or not key.own:
            raise unknown_key()
        return self._owner(key)

    def _foreign(self, credential: str) -> Identity:
        """Return the identity behind a key of another gateway, which is found by its digest."""
        if not may_be_foreign(credential):
            raise unknown_key()
        digest = foreign_digest(sha256_of(credential))
        key = self._keys.get(foreign_id(digest))
        same = compare_digest(digest, self._dummy if key is None else key.digest)
        if key is not None and key.foreign and not key.digest:
            # Its id follows from all of it, so this is the key itself: no issuer is to be asked about it.
            raise SmgError(ErrorKind.UNAUTHENTICATED, "the key is revoked", code="revoked_api_key")
        if key is None or not same or not key.foreign:
            raise unknown_key()
        return self._owner(key)

    def _owner(self, key: KnownKey) -> Identity:
        if key.expires_ms and self._keys.now_ms() >= key.expires_ms:
            raise SmgError(ErrorKind.UNAUTHENTICATED, "the key has expired", code="expired_api_key")
        kept = self._identities.get(key.id)
        if kept is None or kept[0] is not key:
            kept = self._identities[key.id] = (
                key,
                Identity(
                    key.id, key.tenant, key.role, key.expires_ms, restrictions=restrictions_of(key)
                ),
            )
        return kept[1]


def restrictions_of(key: KnownKey) -> "Restrictions | None":
    """Return what a key is restricted to; None for one that is not."""
    if not key.restricted:
        return None
    # Most clusters have no such key.
    from smg_node.access.restrictions import restrictions_of

    return restrictions_of(key.models, key.networks, key.routes, key.max_priority)


def unknown_key() -> SmgError:
    """Return the error for a key that is not good."""
    return SmgError(ErrorKind.UNAUTHENTICATED, "the key is not valid here")


def missing_key() -> SmgError:
    """Return the error for a request without a key where one is needed."""
    return SmgError(
        ErrorKind.UNAUTHENTICATED,
        "this needs a key: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`",
    )
