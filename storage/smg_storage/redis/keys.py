"""Keys of a store in Redis: everything of a thread has its tag, and so one slot.

    smg:<tenant>:{<thread>}:<kind>:<id>     kinds: conv items trash item refs loc resp ev ex
    smg:<tenant>:safety:<digest>            a person's responses
    smg:<tenant>:idem:<digest>              a key of the client's choice
    smg:<tenant>:used                       how much a tenant has
    smg:runs                                background responses that need an owner

A tenant is escaped, so no name of one can look like another's key or bring a tag of its own.
"""

import re
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, unquote

from smg_storage.ids import thread_of
from smg_storage.url import StoreUrlError

DEFAULT_PREFIX: Final = "smg"
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,64}")


class Keys:
    """The names of one store's keys."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise StoreUrlError("a prefix of keys has letters, digits and _ . : - only")
        self.prefix: Final = prefix
        self.runs: Final = f"{prefix}:runs"
        self.ping: Final = f"{prefix}:ping"
        self._kinds: Final = re.compile(
            re.escape(prefix) + r":([^:{}]*):(?:\{([0-9a-f]+)\}:)?(trash|items|safety):(.*)",
            re.DOTALL,
        )

    def base(self, tenant: str) -> str:
        """Return the front of all keys of a tenant."""
        return f"{self.prefix}:{quote(tenant, safe='')}:"

    def slot(self, tenant: str, thread: str) -> str:
        """Return a key of the slot in which a thread lies."""
        return f"{self.base(tenant)}{{{thread}}}"

    def person(self, tenant: str, identifier: str) -> str:
        """Return the key of a person's list; the identifier itself is not in it."""
        return f"{self.base(tenant)}safety:{_digest(identifier)}"

    def idempotency(self, tenant: str, key: str) -> str:
        """Return the key of what a client's own key stands for."""
        return f"{self.base(tenant)}idem:{_digest(key)}"

    def used(self, tenant: str) -> str:
        """Return the key of how much a tenant has."""
        return f"{self.base(tenant)}used"

    def run(self, tenant: str, response_id: str) -> str:
        """Return how a response is called among those that need an owner."""
        return f"{quote(tenant, safe='')} {response_id}"

    def swept(self, key: str) -> tuple[str, str, str] | None:
        """Return tenant, kind and id of a key that may have to be swept: items, trash, or a person's list."""
        found = self._kinds.fullmatch(key)
        return None if found is None else (unquote(found[1]), found[3], found[4])


def run_of(text: str) -> tuple[str, str]:
    """Return the tenant and the id that `Keys.run` made it of."""
    tenant, _, response_id = text.partition(" ")
    return unquote(tenant), response_id


def person_member(response_id: str) -> str:
    """Return a response's place in a person's list; a space sorts before every character of an id."""
    return f"{response_id} {thread_of(response_id)}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
