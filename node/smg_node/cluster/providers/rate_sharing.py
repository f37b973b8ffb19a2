"""Rate sharing: what the accounts of this process were told of their limits, and what others were told of the same ones.

An account is known to others by a digest under a key of the cluster: who hears it, and has not the same key for the same
provider, learns nothing from it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from smg_mesh.shared import SharedBucket, SharedPause
from smg_node.providers.account import ProviderAccount
from smg_node.providers.account_key import Key as AccountKey
from smg_node.providers.rates.bucket import Bucket

ID_BYTES: Final = 8
MODEL: Final = "model"
"""The reason for a model that the vendor does not have."""
_PAUSE: Final = "!"
"""How the name of a reason begins, where buckets have theirs."""

Rows: TypeAlias = Mapping[str, SharedBucket | SharedPause]


class RatesPort(Protocol):
    """Port to what other processes and nodes say."""

    def publish(self, rows: Rows) -> object:
        """Let them know these, and nothing else."""
        ...

    def others(self) -> Rows:
        """Return what they say, as one."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the names of what they say anew, or not any more."""
        ...


class RateSharing:
    """Exchange of one process. `digest` is one under a key of the cluster."""

    def __init__(
        self,
        accounts: Callable[[], Mapping[str, ProviderAccount]],
        rates: RatesPort,
        digest: Callable[[bytes, int], bytes],
        now_ms: Callable[[], int],
    ) -> None:
        self._accounts = accounts
        self._rates = rates
        self._digest = digest
        self._now_ms = now_ms
        self._probe = b""
        """The digest of nothing: another one where the cluster's key is another one."""
        self._keys: dict[str, tuple[ProviderAccount, AccountKey]] = {}
        self._models: dict[str, tuple[ProviderAccount, str]] = {}
        self._stale = True
        rates.watch(self.hear)

    def changed(self) -> None:
        """Look at all accounts anew, and at what is known of them: they are defined otherwise."""
        self._stale = True
        self.hear(list(self._rates.others()))

    def rows(self) -> dict[str, SharedBucket | SharedPause]:
        """Return all that this process knows by itself."""
        self._look()
        now_s = self._now_ms() / 1000
        rows: dict[str, SharedBucket | SharedPause] = {}
        for name, (account, key) in self._keys.items():
            for what, wanted, bucket in key.limits.news(now_s):
                rows[f"{name}/{what}"] = _row(wanted, bucket)
            for why, until in account.key_news(key):
                rows[f"{name}/{_PAUSE}{why}"] = SharedPause(round(1000 * until))
        for name, (account, model) in self._models.items():
            if until := account.model_news(model):
                rows[f"{name}/{_PAUSE}{MODEL}"] = SharedPause(round(1000 * until))
        return rows

    def hear(self, names: Sequence[str]) -> None:
        """Take what others say of these things; what is not known here is passed over."""
        self._look()
        others, now_s = self._rates.others(), self._now_ms() / 1000
        for name in names:
            account_id, _, what = name.partition("/")
            row, reason = others.get(name), what.removeprefix(_PAUSE)
            if isinstance(row, SharedPause):
                self._pause(account_id, reason, row.until_ms / 1000)
            elif what == reason and account_id in self._keys:
                wanted, bucket = (0.0, None) if row is None else _told(row)
                self._keys[account_id][1].limits.hear(what, bucket, wanted, now_s)

    def _pause(self, account_id: str, reason: str, until: float) -> None:
        if account_id in self._keys:
            account, key = self._keys[account_id]
            account.hear_key(key, reason, until)
        elif account_id in self._models and reason == MODEL:
            account, model = self._models[account_id]
            account.hear_model(model, until)

    def _look(self) -> None:
        """Find the accounts by what they are called among nodes."""
        probe = self._digest(b"", ID_BYTES)
        if not self._stale and probe == self._probe:
            return
        self._probe = probe
        self._keys, self._models = {}, {}
        for account in self._accounts().values():
            for whole, key in account.shared_keys():
                self._keys[self._digest(whole, ID_BYTES).hex()] = account, key
            for whole, model in account.shared_models():
                self._models[self._digest(whole, ID_BYTES).hex()] = account, model
        # A file that holds a key may be there later.
        self._stale = any(account.unread for account in self._accounts().values())


def _row(wanted: float, bucket: Bucket | None) -> SharedBucket:
    # A thousandth counts: who asks for one in a minute wants something.
    said = SharedBucket(round(1000 * wanted))
    if bucket is None or bucket.limit < 1:
        return said
    return SharedBucket(
        said.wanted,
        int(bucket.limit),
        max(0, int(bucket.remaining)),
        round(1000 * bucket.full_at),
        round(1000 * bucket.seen),
        bucket.window,
    )


def _told(row: SharedBucket) -> tuple[float, Bucket | None]:
    wanted = row.wanted / 1000
    if not row.limit:
        return wanted, None
    full_at, seen = row.full_at_ms / 1000, row.seen_ms / 1000
    return wanted, Bucket(float(row.limit), float(row.remaining), full_at, seen, row.window)
