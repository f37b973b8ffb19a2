"""Account key: one key of an account, what its vendor said of it, and a call's use of it."""

from hashlib import blake2b

import msgspec

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.made_token import MadeToken
from smg_node.providers.rates.rate_limits import RateLimits


class Key(msgspec.Struct):
    """One key: its secret as it was read, and what the vendor said of it. `off_until` is in seconds since the epoch."""

    value: str
    limits: RateLimits
    off_until: float = 0.0
    why: SmgError | None = None
    """The error that made it rest."""
    refused: bool = False
    """Whether this process was told so, and not another one."""

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that tell it from the account's others, the same on every node."""
        return blake2b(self.value.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()

    def rest(self, until: float, why: SmgError, *, refused: bool) -> None:
        """Leave it alone until then; an earlier moment changes nothing."""
        if until > self.off_until:
            self.off_until, self.why, self.refused = until, why, refused


class Use(msgspec.Struct, frozen=True):
    """A call's use of an account: the key, and the call's number in its limits. `token` is what let it in, where that
    was made for it.
    """

    key: Key
    call: int
    client_key: bool = False
    token: MadeToken | None = None
