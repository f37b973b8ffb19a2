"""Provider account: one provider as a process uses it: its definition, its keys, and what its vendor said of them.

Keys are tried in turn; one that is refused, or has nothing left, rests while the others go on. What an answer tells of
limits is kept for each key, so that load moves before the first refusal. What others were told, of the same key in
another process or at another node, counts as if this one had been.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.engines.http.vendor_cache import CachePlace
from smg_node.providers.access_tokens.token_port import KeepTokens
from smg_node.providers.account_key import Key, Use
from smg_node.providers.affinity.cache_rules import scope_of
from smg_node.providers.failures.failure_class import FailureClass
from smg_node.providers.provider_call import ApiKey, BearerToken, Credential
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec, write_spec
from smg_node.providers.rates.rate_limits import KeyLimit, RateLimits
from smg_node.providers.secret import SecretSources
from smg_node.providers.vendor_errors import (
    OFF_MIN_S,
    Consequence,
    VendorFailure,
    again,
    class_error,
)

CLOSED_S: Final = 1.0
"""So long a key rests whose vendor refused it as too fast and did not say for how long."""
SPREAD_MAX_S: Final = 10.0
"""Clients that are refused at once are told to come back within so long of the first."""
GOLDEN_RATIO: Final = 0.618_033_988_75
"""Its multiples, without what is whole, lie far apart from each other."""
MODEL_OFF_S: Final = 300.0
"""So long nobody asks for a model that the vendor does not have."""
TOO_FAST: Final = SmgError(
    ErrorKind.RATE_LIMITED,
    "the provider takes no more requests for now; try again after the time in Retry-After",
    code="upstream_rate_limited",
)
HEARD: Final[Mapping[str, FailureClass]] = {
    "denied": FailureClass.NOT_LET_IN,
    "money": FailureClass.NO_MONEY,
}
"""Reasons to leave a key alone that another process was told."""
CLOSED: Final = "closed"
"""The reason for a key that is asked too often."""
NOTHING: Final[Mapping[str, float]] = {}
ANSWERED: Final = "answered"
CREDENTIAL_CODE: Final = "provider_secret"


class ProviderAccount:
    """One account. Times are seconds since the epoch."""

    def __init__(
        self,
        spec: ProviderSpec,
        secrets: ProviderSecrets,
        sources: SecretSources,
        clock: Clock,
        keep: KeepTokens,
    ) -> None:
        self.spec = spec
        self._secrets = secrets
        self._sources = sources
        self._clock = clock
        self._keep = keep
        self._kept = keep(spec, secrets)
        self._keys: list[Key] | None = None
        self._next = 0
        self._models_off: dict[str, tuple[float, SmgError]] = {}
        self._scopes: dict[tuple[str, str], int] = {}
        self._refused = 0
        """So many clients were refused that may come again."""
        self._models_refused: dict[str, float] = {}
        """Until when models are off that this process found out."""
        self.models: set[str] = set()
        """The vendor's names of those that targets are open for."""
        self.noted: Callable[[], None] = _nobody
        """Is called when there may be something that others want to know."""
        self.outcomes: dict[str, int] = {}
        """How often the vendor answered, or failed, by the class of it."""
        self.cache_tokens: dict[str, float] = {}
        """Tokens of prompts that were read from the vendor's cache, written to it, and expected to be read."""

    def update(self, spec: ProviderSpec, secrets: ProviderSecrets) -> None:
        """Take another definition; keys that stay keep what is known of them."""
        before = self.spec
        if (secrets, spec.credentials, spec.region) != (
            self._secrets,
            before.credentials,
            before.region,
        ):
            self.close()
            self._kept = self._keep(spec, secrets)
        if secrets != self._secrets or spec.kind != before.kind:
            known = {key.value: key for key in self._keys or ()}
            self._secrets, self._keys = secrets, None
            if spec.kind == before.kind:
                try:
                    self._keys = [known.get(key.value, key) for key in self._read()]
                except SmgError:
                    # Told to whoever calls next.
                    self._keys = None
        self.spec = spec
        self._models_off.clear()
        self._scopes.clear()
        self._models_refused.clear()

    def close(self) -> None:
        """Make no more tokens."""
        if self._kept is not None:
            self._kept.stop()

    async def use(self, need: Mapping[str, float], prefer: str = "") -> tuple[Credential, Use]:
        """Return the credential of the next call, which will spend about `need`: the key with the digest `prefer` if it
        may be used, else the next one in turn.

        RATE_LIMITED where every key rests; OVERLOADED where there is no token in time.
        """
        now = self._now()
        self.noted()
        if self.spec.credentials.kind != "keys":
            key = self._all()[0]
            if (wait_s := self._wait_s(key, need, now)) > 0:
                raise again(TOO_FAST if key.why is None else key.why, wait_s)
            kept = self._kept
            if kept is None:
                return None, Use(key, key.limits.begin(need, now))
            token = kept.keeper.current or await kept.keeper.first()
            return kept.credential(token), Use(key, key.limits.begin(need, now), token=token)
        keys = self._all()
        for key in keys if prefer else ():
            if key.digest == prefer and self._wait_s(key, need, now) <= 0:
                return ApiKey(key.value), Use(key, key.limits.begin(need, now))
        for step in range(len(keys)):
            key = keys[(self._next + step) % len(keys)]
            if self._wait_s(key, need, now) <= 0:
                self._next = (self._next + step + 1) % len(keys)
                return ApiKey(key.value), Use(key, key.limits.begin(need, now))
        raise self._resting(need, now)

    def cache_places(self, model: str, need: Mapping[str, float]) -> Sequence[CachePlace]:
        """Return where prompts of that model are cached: in the account, or with each of its keys; and for how long
        none, or not that one, takes a call that spends `need`.
        """
        spec, now = self.spec, self._now()
        try:
            keys = self._all()
        except SmgError:
            # Told to the call that needs one.
            return (CachePlace(scope_of(spec, model)),)
        waits = [max(0.0, self._wait_s(key, need, now)) for key in keys]
        if spec.cache_scope != "key":
            return (CachePlace(self._scope(model, ""), "", min(waits)),)
        return [
            CachePlace(self._scope(model, key.digest), key.digest, wait_s)
            for key, wait_s in zip(keys, waits, strict=True)
        ]

    def _scope(self, model: str, key: str) -> int:
        found = self._scopes.get((model, key))
        if found is None:
            found = self._scopes[model, key] = scope_of(self.spec, model, key)
        return found

    def count_cached(self, *, read: float, written: float, expected: float) -> None:
        """Count the tokens of one call's prompt."""
        for name, tokens in (("read", read), ("written", written), ("expected", expected)):
            if tokens:
                self.cache_tokens[name] = self.cache_tokens.get(name, 0.0) + tokens

    def missed(self, need: Mapping[str, float]) -> None:
        """Take in that a call would have been made, had it been possible."""
        now = self._now()
        for key in self._keys or ():
            share = 1 / len(self._keys or ())
            key.limits.ask({name: amount * share for name, amount in need.items()}, now)
        self.noted()

    def off_s(self, model: str, need: Mapping[str, float] = NOTHING) -> float:
        """Return for how long no call of that model which spends about `need` should be made, 0.0 if one may be now."""
        if self.spec.client_keys and not self._secrets.keys:
            # Whoever comes brings the key.
            return 0.0
        now = self._now()
        off = self._models_off[model][0] - now if model in self._models_off else 0.0
        try:
            keys = self._all()
        except SmgError:
            return max(off, OFF_MIN_S)
        return max(0.0, off, min(self._wait_s(key, need, now) for key in keys))

    def off_error(self, model: str, need: Mapping[str, float] = NOTHING) -> SmgError:
        """Return the error for such a call while it is off."""
        now = self._now()
        off_until, why = self._models_off.get(model, (0.0, None))
        if why is not None and off_until > now:
            return again(why, off_until - now)
        try:
            self._all()
        except SmgError as error:
            return error
        return self._resting(need, now)

    def refusal(self, model: str, need: Mapping[str, float]) -> SmgError:
        """Return that error for a client that is refused now: with the time until there is enough for it, and a part of
        the time that all take who are refused, another part for each.
        """
        error, now = self.off_error(model, need), self._now()
        if error.retry_after_s is None or error.kind is not ErrorKind.RATE_LIMITED:
            return error
        self._refused += 1
        place = self._refused * GOLDEN_RATIO % 1
        backlog_s = min((key.limits.backlog_s(need, now) for key in self._keys or ()), default=0.0)
        return again(error, error.retry_after_s + place * min(backlog_s, SPREAD_MAX_S))

    def rests(self) -> Sequence[tuple[float, SmgError | None]]:
        """Return for how long each key rests, 0.0 for one that does not, with its error; none before they were read."""
        now = self._now()
        return [
            (max(0.0, self._wait_s(key, {}, now)), key.why if key.off_until > now else None)
            for key in self._keys or ()
        ]

    def key_limits(self) -> Sequence[Sequence[KeyLimit]]:
        """Return what the vendor told of the limits of each key; none before they were read."""
        now = self._now()
        return [key.limits.told(now) for key in self._keys or ()]

    def _resting(self, need: Mapping[str, float], now: float) -> SmgError:
        """Return the error where all keys rest: that of the one that is back first."""
        wait_s, why = min(
            (
                (self._wait_s(key, need, now), key.why if key.off_until > now else None)
                for key in self._all()
            ),
            key=lambda one: one[0],
        )
        return again(TOO_FAST if why is None else why, wait_s)

    def client_use(self) -> Use:
        """Return the use of a call by a client's own key: what it comes to says nothing of this account."""
        key = Key("", RateLimits(self.spec.kind))
        return Use(key, key.limits.begin({}, self._now()), client_key=True)

    def unanswered(self, use: Use) -> None:
        """Take in that a call ended before any of its answer came."""
        use.key.limits.end(use.call)

    def answered(self, use: Use, headers: Mapping[str, str]) -> None:
        """Take in the headers of an answer."""
        use.key.limits.learn(use.call, headers, self._now())
        self.noted()

    def count(self, outcome: str = ANSWERED) -> None:
        """Count one call that the vendor answered, or failed."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def failed(self, use: Use, failure: VendorFailure, model: str) -> None:
        """Take in what a failure says of the account."""
        self.count(failure.failure.value)
        self.noted()
        now, key = self._now(), use.key
        if failure.consequence is Consequence.TARGET_UNLISTED:
            self._models_off[model] = now + MODEL_OFF_S, failure.error
            self._models_refused[model] = now + MODEL_OFF_S
        elif use.client_key:
            return
        elif failure.consequence is Consequence.PROVIDER_OFF:
            kept = self._kept
            denied = failure.failure is FailureClass.NOT_LET_IN
            if denied and kept is not None and use.token and kept.keeper.refused(use.token):
                # Another one is being made.
                return
            until = now + max(OFF_MIN_S, failure.wait_s or 0.0)
            key.rest(until, failure.error, refused=True)
        elif failure.consequence is Consequence.BUCKET_CLOSED:
            key.limits.close(CLOSED_S if failure.wait_s is None else failure.wait_s, now)

    # ── What others know ─────────────────────────────────────────────────────

    def shared_keys(self) -> Sequence[tuple[bytes, Key]]:
        """Return the keys, each with what it is the same by in all processes that use it; none that cannot be read.

        That holds the key itself, so it is for making a digest only.
        """
        try:
            keys = self._all()
        except SmgError:
            return ()
        return [(self._identity(key.value), key) for key in keys]

    @property
    def unread(self) -> bool:
        """Whether it has keys that could not be read yet."""
        return self._keys is None and bool(self._secrets.keys)

    def shared_models(self) -> Sequence[tuple[bytes, str]]:
        """Return the models, likewise: one that is off is so by a definition, and by no other one."""
        defined = write_spec(self.spec)
        return [(self._identity(f"{model}\0", defined), model) for model in sorted(self.models)]

    def key_news(self, key: Key) -> Iterator[tuple[str, float]]:
        """Yield why this process was told to leave a key alone, and until when."""
        now = self._now()
        if key.refused and key.off_until > now and key.why is not None:
            money = key.why.code == class_error(FailureClass.NO_MONEY).code
            # Whom a vendor lets in is another matter where each node has credentials of its own.
            if money or self.spec.credentials.kind == "keys":
                yield "money" if money else "denied", key.off_until
        if key.limits.refused_until > now:
            yield CLOSED, key.limits.refused_until

    def model_news(self, model: str) -> float:
        """Return until when that model is off as far as this process was told; 0.0 if it is not."""
        until = self._models_refused.get(model, 0.0)
        return until if until > self._now() else 0.0

    def hear_key(self, key: Key, why: str, until: float) -> None:
        """Take in that another process was told to leave a key alone; a reason that is not known here counts not."""
        if why == CLOSED:
            key.limits.close_until(until)
        elif why in HEARD:
            key.rest(until, class_error(HEARD[why]), refused=False)

    def hear_model(self, model: str, until: float) -> None:
        """Take in that another process was told that the vendor does not have a model."""
        if until > self._models_off.get(model, (0.0, None))[0]:
            self._models_off[model] = until, class_error(FailureClass.MODEL_UNKNOWN)

    def _identity(self, *parts: str | bytes) -> bytes:
        spec = self.spec
        named = sorted((name, one.spelled) for name, one in self._secrets.named.items())
        whole = (spec.name, spec.kind, msgspec.to_builtins(spec.credentials), named, parts)
        return msgspec.msgpack.encode(whole)

    @property
    def secrets(self) -> Sequence[str]:
        """Every text that no client and no log may see."""
        keys = [key.value for key in self._keys or ()]
        kept = self._kept
        token = None if kept is None else kept.keeper.current
        if token is not None:
            made = token.credential
            keys += (
                [made.value]
                if isinstance(made, BearerToken)
                else [made.access_key_id, made.secret_access_key, made.session_token]
            )
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
        if not values and self.spec.credentials.kind != "keys":
            values = [""]
        if not values and self.spec.client_keys:
            raise SmgError(
                ErrorKind.UNAUTHENTICATED,
                "this provider takes its clients' own keys: send one in x-smg-provider-key",
                code="provider_key_missing",
            )
        if not values:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                "the provider has no key on this node",
                code=CREDENTIAL_CODE,
            )
        return [Key(value, RateLimits(kind)) for value in values]

    def _now(self) -> float:
        return self._clock.now_ms() / 1000


def _nobody() -> None:
    """Do nothing."""
