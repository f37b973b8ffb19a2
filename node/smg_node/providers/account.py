"""Provider account: one provider as a process uses it: its definition, its keys, and what its vendor said of them.

Keys are tried in turn; one that is refused, or has nothing left, rests while the others go on. What an answer tells of
limits is kept for each key, so that load moves before the first refusal.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.providers.provider_call import ApiKey, Credential
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.rate_limits import RateLimits
from smg_node.providers.secret import SecretSources
from smg_node.providers.vendor_errors import OFF_MIN_S, Consequence, VendorFailure

CLOSED_S: Final = 1.0
"""So long a key rests whose vendor refused it as too fast and did not say for how long."""
MODEL_OFF_S: Final = 300.0
"""So long nobody asks for a model that the vendor does not have."""
CREDENTIAL_CODE: Final = "provider_secret"


class Key(msgspec.Struct):
    """One key: its secret as it was read, and what the vendor said of it. `off_until` is in seconds since the epoch."""

    value: str
    limits: RateLimits
    off_until: float = 0.0
    why: str = ""


class Use(msgspec.Struct, frozen=True):
    """A call's use of an account: the key, and the call's number in its limits."""

    key: Key
    call: int
    client_key: bool = False


class ProviderAccount:
    """One account. Times are seconds since the epoch."""

    def __init__(
        self, spec: ProviderSpec, secrets: ProviderSecrets, sources: SecretSources, clock: Clock
    ) -> None:
        self.spec = spec
        self._secrets = secrets
        self._sources = sources
        self._clock = clock
        self._keys: list[Key] | None = None
        self._next = 0
        self._models_off: dict[str, float] = {}

    def update(self, spec: ProviderSpec, secrets: ProviderSecrets) -> None:
        """Take another definition; keys that stay keep what is known of them."""
        if secrets != self._secrets or spec.kind != self.spec.kind:
            known = {key.value: key for key in self._keys or ()}
            self._secrets, self._keys = secrets, None
            if spec.kind == self.spec.kind:
                try:
                    self._keys = [known.get(key.value, key) for key in self._read()]
                except SmgError:
                    # Told to whoever calls next.
                    self._keys = None
        self.spec = spec
        self._models_off.clear()

    def use(self, need: Mapping[str, float]) -> tuple[Credential, Use]:
        """Return the credential of the next call, which will spend about `need`; RATE_LIMITED where every key rests."""
        now = self._now()
        if self.spec.credentials.kind == "none":
            key = self._all()[0]
            return None, Use(key, key.limits.begin(need, now))
        keys = self._all()
        for step in range(len(keys)):
            key = keys[(self._next + step) % len(keys)]
            if self._wait_s(key, need, now) <= 0:
                self._next = (self._next + step + 1) % len(keys)
                return ApiKey(key.value), Use(key, key.limits.begin(need, now))
        wait_s = min(self._wait_s(key, need, now) for key in keys)
        raise SmgError(
            ErrorKind.RATE_LIMITED,
            "the provider takes no more requests for now; try again after the time in Retry-After",
            code="upstream_rate_limited",
            retry_after_s=min(wait_s, OFF_MIN_S),
        )

    def off_s(self, model: str) -> float:
        """Return for how long no call of that model should be made, 0.0 if one may be now."""
        now = self._now()
        off = self._models_off.get(model, 0.0) - now
        try:
            keys = self._all()
        except SmgError:
            return max(off, OFF_MIN_S)
        return max(0.0, off, min(self._wait_s(key, {}, now) for key in keys))

    def answered(self, use: Use, headers: Mapping[str, str]) -> None:
        """Take in the headers of an answer."""
        use.key.limits.learn(use.call, headers, self._now())

    def failed(self, use: Use, failure: VendorFailure, model: str) -> None:
        """Take in what a failure says of the account."""
        now, key = self._now(), use.key
        if failure.consequence is Consequence.TARGET_UNLISTED:
            self._models_off[model] = now + MODEL_OFF_S
        elif use.client_key:
            return
        elif failure.consequence is Consequence.PROVIDER_OFF:
            key.off_until = now + max(OFF_MIN_S, failure.wait_s or 0.0)
            key.why = failure.failure.value
        elif failure.consequence is Consequence.BUCKET_CLOSED:
            key.limits.close(CLOSED_S if failure.wait_s is None else failure.wait_s, now)

    @property
    def secrets(self) -> Sequence[str]:
        """Every text that no client and no log may see."""
        keys = [key.value for key in self._keys or ()]
        return [text for text in (*keys, *self.spec.accounts) if text]

    def _wait_s(self, key: Key, need: Mapping[str, float], now: float) -> float:
        return max(key.off_until - now, key.limits.wait_s(need, now))

    def _all(self) -> list[Key]:
        if self._keys is None:
            self._keys = self._read()
        return self._keys

    def _read(self) -> list[Key]:
        """Read the keys. UPSTREAM_FAILED `provider_secret` for one that is not there."""
        kind = self.spec.kind
        values = [secret.read(self._sources) for secret in self._secrets.keys]
        if not values and self.spec.credentials.kind == "none":
            values = [""]
        if not values:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                "the provider has no key on this node",
                code=CREDENTIAL_CODE,
            )
        return [Key(value, RateLimits(kind)) for value in values]

    def _now(self) -> float:
        return self._clock.now_ms() / 1000
