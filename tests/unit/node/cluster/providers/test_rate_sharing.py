"""What one process is told of an account counts in all others that have the same key, and says nothing to any other."""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_mesh.shared import SharedBucket, SharedPause
from smg_node.cluster.providers.definitions import read_own
from smg_node.cluster.providers.rate_sharing import RateSharing
from smg_node.engines.engine_options import EngineOptions
from smg_node.providers.account import ProviderAccount
from smg_node.providers.account_key import Use
from smg_node.providers.provider_book import ProviderBook
from smg_node.providers.vendor_errors import OFF_MIN_S, vendor_failure
from support.state.fake_shared_state import FakeRates

NOW_MS = 1_790_000_000_000
DEFINED = {"providers": {"oai": {"kind": "openai", "keys": ["sk-1"], "models": ["m"]}}}
CLUSTER_KEY = bytes(36)
NEED = {"requests": 1.0, "tokens": 10.0}


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000


class Process:
    """A process with its accounts; `key` is the cluster's."""

    def __init__(self, clock: Clock, defined: Any = None, *, key: bytes = CLUSTER_KEY) -> None:
        self.clock = clock
        self.key = key
        self.book = ProviderBook(EngineOptions(), clock, lambda _work, name: pytest.fail(name))
        self.rates = FakeRates()
        digest = CarriedSecrets(lambda: [self.key]).digest
        self.sharing = RateSharing(self.book.accounts, self.rates, digest, clock.now_ms)
        self.define(defined or DEFINED)

    def define(self, defined: Any) -> None:
        providers = read_own(json.dumps(defined)).providers
        self.book.update({name: (one.spec, one.secrets) for name, one in providers.items()})
        for name, one in providers.items():
            for model in one.spec.models:
                self.book.open(name, model.model, public=model.model)
        self.sharing.changed()

    @property
    def account(self) -> ProviderAccount:
        return self.book.accounts()["oai"]

    def tell(self, *others: "Process") -> None:
        rows = self.sharing.rows()
        for other in others:
            other.rates.say(rows)

    async def use(self) -> Use:
        return (await self.account.use(NEED))[1]

    async def refused(self, status: int, headers: dict[str, str], body: bytes = b"{}") -> None:
        use = await self.use()
        failure = vendor_failure(
            status, headers, body, kind="openai", now=self.clock.now_ms() / 1000
        )
        self.account.failed(use, failure, "m")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def left(remaining: int, reset: str = "60s") -> dict[str, str]:
    return {
        "x-ratelimit-limit-requests": "600",
        "x-ratelimit-remaining-requests": str(remaining),
        "x-ratelimit-reset-requests": reset,
    }


async def test_a_bucket_that_one_was_told_to_be_empty_is_so_for_all(clock: Clock) -> None:
    a, b = Process(clock), Process(clock)
    a.account.answered(await a.use(), left(0))
    a.tell(b)
    assert a.account.off_s("m", NEED) == pytest.approx(0.1)
    # What it wanted itself is in the way of the other: both spend from one bucket.
    assert 0.1 <= b.account.off_s("m", NEED) < 10
    clock.ms += 60_000
    assert b.account.off_s("m", NEED) == 0.0


async def test_later_news_count_and_earlier_ones_do_not(clock: Clock) -> None:
    a, b = Process(clock), Process(clock)
    a.account.answered(await a.use(), left(0))
    early = a.sharing.rows()
    clock.ms += 100
    b.account.answered(await b.use(), left(500, "6s"))
    b.rates.say(early)
    (told,) = b.account.key_limits()[0]
    assert (told.left, told.told_s) == (500, 0)
    clock.ms += 100
    a.account.answered(await a.use(), left(400, "20s"))
    a.tell(b)
    (told,) = b.account.key_limits()[0]
    assert (told.left, told.limit, told.full_s) == (400, 600, 20)


async def test_what_others_want_is_forgotten_with_them(clock: Clock) -> None:
    a, b = Process(clock), Process(clock)
    for _ in range(20):
        a.account.answered(await a.use(), left(590, "1s"))
    a.tell(b)
    assert b.account.key_limits()[0][0].wanted > 5
    b.rates.say({})
    assert b.account.key_limits()[0][0].wanted == 0
    assert a.sharing.rows()
    clock.ms += 120_000
    assert a.sharing.rows() == {}, "an account that nobody uses is not spoken of"


@pytest.mark.parametrize(
    ("status", "body", "code", "off_s"),
    [
        (401, b"{}", "upstream_denied", OFF_MIN_S),
        (402, b"{}", "upstream_quota", OFF_MIN_S),
        (429, b'{"error": {"code": "insufficient_quota"}}', "upstream_quota", OFF_MIN_S),
        (429, b"{}", "upstream_rate_limited", 7.0),
        (404, b'{"error": {"code": "model_not_found"}}', "upstream_model_unknown", 300.0),
    ],
)
async def test_what_a_vendor_refuses_one_it_is_not_asked_by_another(
    clock: Clock, status: int, body: bytes, code: str, off_s: float
) -> None:
    a, b, c = Process(clock), Process(clock), Process(clock)
    await a.refused(status, {"retry-after": "7"} if off_s == 7.0 else {}, body)
    a.tell(b)
    assert b.account.off_s("m") == pytest.approx(off_s, abs=0.01)
    assert b.account.off_error("m").code == code
    # Whoever heard it does not say it: the one that was told does.
    assert not [row for row in b.sharing.rows().values() if isinstance(row, SharedPause)]
    b.tell(c)
    assert c.account.off_s("m") == 0.0
    clock.ms += round(1000 * off_s) + 100
    assert b.account.off_s("m") == 0.0
    assert not [row for row in a.sharing.rows().values() if isinstance(row, SharedPause)]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "openai", "keys": ["sk-2"], "models": ["m"]},
        {"kind": "xai", "keys": ["sk-1"], "models": ["m"]},
    ],
)
async def test_another_key_or_vendor_is_another_account(clock: Clock, other: Any) -> None:
    a, b = Process(clock), Process(clock, {"providers": {"oai": other}})
    a.account.answered(await a.use(), left(0))
    a.tell(b)
    assert b.account.off_s("m", NEED) == 0.0
    assert b.account.key_limits() == [[]]


async def test_a_model_is_off_by_a_definition_and_not_by_the_next(clock: Clock) -> None:
    a, b = Process(clock), Process(clock)
    await a.refused(404, {}, b'{"error": {"code": "model_not_found"}}')
    rows = a.sharing.rows()
    changed = json.loads(json.dumps(DEFINED))
    changed["providers"]["oai"]["labels"] = {"zone": "eu"}
    b.define(changed)
    b.rates.say(rows)
    assert b.account.off_s("m") == 0.0


async def test_rows_hold_no_secret_and_need_the_key_of_the_cluster(clock: Clock) -> None:
    a, b = Process(clock), Process(clock, key=b"\1" * 36)
    a.account.answered(await a.use(), left(0))
    rows = a.sharing.rows()
    assert "sk-1" not in str(rows)
    assert {len(name.partition("/")[0]) for name in rows} == {16}
    b.rates.say(rows)
    assert b.account.key_limits() == [[]]
    # Keys of the cluster change while it runs.
    b.key = CLUSTER_KEY
    b.rates.say(rows)
    assert b.account.off_s("m", NEED) > 0


async def test_a_key_that_comes_later_is_shared_from_then_on(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "key"
    defined = {"providers": {"oai": {"kind": "openai", "keys": [f"file:{file}"], "models": ["m"]}}}
    late, other = Process(clock, defined), Process(clock)
    other.account.answered(await other.use(), left(0))
    other.tell(late)
    assert late.account.key_limits() == []
    file.write_text("sk-1\n")
    other.tell(late)
    assert late.account.key_limits()[0][0].left < 1


async def test_what_is_not_known_here_is_passed_over(clock: Clock) -> None:
    a = Process(clock)
    a.account.answered(await a.use(), left(300, "30s"))
    (name,) = a.sharing.rows()
    account_id = name.partition("/")[0]
    strange = {
        f"{'0' * 16}/requests": SharedBucket(5, 600, 0, NOW_MS + 60_000, NOW_MS),
        f"{account_id}/!abolished": SharedPause(NOW_MS + 60_000),
        f"{account_id}/!model": SharedPause(NOW_MS + 60_000),
        f"{account_id}/pages": SharedBucket(5, 600, 0, NOW_MS + 60_000, NOW_MS),
        f"{account_id}/requests": SharedBucket(0, 600, 0, NOW_MS + 60_000, NOW_MS + 5_000),
    }
    a.rates.say(strange)
    assert a.account.off_s("m", NEED) == 0.0


async def test_credentials_of_each_node_s_own_are_refused_to_it_alone(clock: Clock) -> None:
    none = {
        "providers": {
            "oai": {
                "kind": "openai_like",
                "base": "http://x/v1",
                "credentials": "none",
                "models": ["m"],
            }
        }
    }
    a, b = Process(clock, none), Process(clock, none)
    await a.refused(401, {})
    a.tell(b)
    assert a.account.off_s("m") > 0
    assert b.account.off_s("m") == 0.0
