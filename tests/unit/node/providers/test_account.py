"""An account's keys are used in turn, rest after refusals, and come back; what is known of a key outlives an update."""

from collections.abc import Mapping
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.providers.account import CLOSED_S, MODEL_OFF_S, ProviderAccount
from smg_node.providers.account_key import Use
from smg_node.providers.provider_call import ApiKey
from smg_node.providers.provider_spec import Credentials, ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret
from smg_node.providers.vendor_errors import OFF_MIN_S, vendor_failure

NEED = {"requests": 1.0}


class Clock:
    now = 1_790_000_000.0

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic_s(self) -> float:
        return self.now


class Sources:
    def __init__(self, **names: str) -> None:
        self.names = names

    def file(self, path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    def env(self, name: str) -> str | None:
        return self.names.get(name)


def account(*keys: str, clock: Clock | None = None, **names: str) -> ProviderAccount:
    spec = ProviderSpec("ant", "anthropic")
    return ProviderAccount(spec, secrets(*keys), Sources(**names), clock or Clock(), no_tokens)


def secrets(*keys: str) -> ProviderSecrets:
    return ProviderSecrets(tuple(map(Secret, keys)))


def no_tokens(_spec: ProviderSpec, _secrets: ProviderSecrets) -> None:
    return None


async def key_of(one: ProviderAccount) -> str:
    credential, _ = await one.use(NEED)
    assert isinstance(credential, ApiKey)
    return credential.value


def refuse(
    one: ProviderAccount,
    use: Use,
    status: int,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"{}",
) -> SmgError:
    failure = vendor_failure(
        status, headers or {}, body, kind="anthropic", now=one._clock.now_ms() / 1000
    )
    one.failed(use, failure, "claude")
    return failure.error


async def test_keys_are_used_in_turn() -> None:
    one = account("a", "b", "c")
    assert [await key_of(one) for _ in range(4)] == ["a", "b", "c", "a"]


async def test_a_key_that_is_not_let_in_rests_and_the_others_go_on() -> None:
    clock = Clock()
    one = account("a", "b", clock=clock)
    _, use = await one.use(NEED)
    refuse(one, use, 401)
    assert [await key_of(one) for _ in range(3)] == ["b", "b", "b"]
    assert one.off_s("claude") == 0.0
    clock.now += OFF_MIN_S + 1
    assert {await key_of(one) for _ in range(2)} == {"a", "b"}


async def test_where_every_key_rests_the_error_of_the_first_to_come_back_is_told() -> None:
    clock = Clock()
    one = account("a", "b", clock=clock)
    for status, headers in ((401, {}), (429, {"retry-after": "7"})):
        _, use = await one.use(NEED)
        refuse(one, use, status, headers)
    assert one.off_s("claude") == pytest.approx(7.0)
    with pytest.raises(SmgError) as caught:
        await one.use(NEED)
    assert caught.value.kind is ErrorKind.RATE_LIMITED
    assert caught.value.retry_after_s == pytest.approx(7.0)
    assert one.off_error("claude").code == "upstream_rate_limited"


async def test_a_refusal_without_a_time_closes_for_a_moment() -> None:
    clock = Clock()
    one = account("a", clock=clock)
    _, use = await one.use(NEED)
    refuse(one, use, 429)
    assert one.off_s("claude") == pytest.approx(CLOSED_S)
    clock.now += CLOSED_S
    assert await key_of(one) == "a"


async def test_denied_alone_it_says_so_as_a_failure_of_the_operators() -> None:
    one = account("a")
    _, use = await one.use(NEED)
    refuse(one, use, 403)
    error = one.off_error("claude")
    assert (error.kind, error.code, error.retry_after_s) == (
        ErrorKind.UPSTREAM_FAILED,
        "upstream_denied",
        None,
    )


async def test_a_model_that_is_not_there_is_off_and_no_other_one() -> None:
    clock = Clock()
    one = account("a", clock=clock)
    _, use = await one.use(NEED)
    refuse(one, use, 404, body=b'{"error":{"type":"not_found_error","message":"model: claude"}}')
    assert one.off_s("claude") == pytest.approx(MODEL_OFF_S)
    assert one.off_error("claude").code == "upstream_model_unknown"
    assert one.off_s("another") == 0.0


async def test_a_client_s_own_key_says_nothing_of_the_account() -> None:
    one = account("a")
    _, use = await one.use(NEED)
    refuse(one, Use(use.key, use.call, client_key=True), 401)
    assert one.off_s("claude") == 0.0


async def test_told_limits_hold_calls_back_before_the_first_refusal() -> None:
    clock = Clock()
    one = account("a", clock=clock)
    _, use = await one.use(NEED)
    headers = {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-09-21T14:14:20Z",
    }
    one.answered(use, headers)
    with pytest.raises(SmgError, match="takes no more requests"):
        await one.use(NEED)


async def test_an_update_keeps_what_is_known_of_keys_that_stay() -> None:
    clock = Clock()
    one = account("a", "b", clock=clock)
    _, use = await one.use(NEED)
    refuse(one, use, 401)
    one.update(ProviderSpec("ant", "anthropic"), secrets("a", "c"))
    assert [await key_of(one) for _ in range(2)] == ["c", "c"]
    one.update(ProviderSpec("ant", "anthropic"), secrets("d"))
    assert await key_of(one) == "d"


@pytest.mark.parametrize(
    ("keys", "words"),
    [((), "has no key"), (("env:GONE",), "GONE is not set"), (("file:/x",), "cannot be read")],
)
async def test_a_key_that_is_not_there_is_told_and_the_target_is_off(
    keys: tuple[str, ...], words: str
) -> None:
    one = account(*keys)
    assert one.off_s("claude") == OFF_MIN_S
    assert words in one.off_error("claude").message
    with pytest.raises(SmgError, match=words):
        await one.use(NEED)


async def test_a_reference_is_read_when_it_is_needed() -> None:
    assert await key_of(account("env:KEY", KEY="sk-1")) == "sk-1"


async def test_without_credentials_calls_carry_none() -> None:
    spec = ProviderSpec("own", "openai_like", base="http://x/v1", credentials=Credentials("none"))
    one = ProviderAccount(spec, ProviderSecrets(), Sources(), Clock(), no_tokens)
    credential, _ = await one.use(NEED)
    assert credential is None


async def test_secrets_are_all_that_nobody_may_see() -> None:
    spec: Any = ProviderSpec("o", "openai", organization="org-1", project="proj_1")
    one = ProviderAccount(spec, secrets("sk-1"), Sources(), Clock(), no_tokens)
    await one.use(NEED)
    assert set(one.secrets) == {"sk-1", "org-1", "proj_1"}


def of_clients() -> ProviderAccount:
    spec = ProviderSpec("ant", "anthropic", client_keys=True)
    return ProviderAccount(spec, ProviderSecrets(), Sources(), Clock(), no_tokens)


async def test_a_provider_of_clients_keys_alone_is_there_and_wants_one() -> None:
    one = of_clients()
    assert one.off_s("claude") == 0.0
    with pytest.raises(SmgError, match="x-smg-provider-key") as caught:
        await one.use(NEED)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED


async def test_a_call_by_a_clients_key_leaves_the_accounts_keys_alone() -> None:
    one = account("a")
    use = one.client_use()
    refuse(one, use, 429, {"retry-after": "30"})
    assert one.off_s("claude") == 0.0
    assert await key_of(one) == "a"


async def test_a_call_without_an_answer_is_forgotten() -> None:
    clock = Clock()
    one = account("a", clock=clock)
    _, lost = await one.use({"requests": 1.0})
    _, use = await one.use({"requests": 1.0})
    _, later = await one.use({"requests": 1.0})
    one.unanswered(lost)
    one.unanswered(later)
    headers = {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "40",
        "anthropic-ratelimit-requests-reset": "2026-09-21T14:14:20Z",
    }
    one.answered(use, headers)
    assert use.key.limits.buckets["requests"].remaining == 40


async def test_clients_that_are_refused_at_once_are_not_told_to_come_back_at_once() -> None:
    clock = Clock()
    one = account("a", clock=clock)
    _, use = await one.use(NEED)
    headers = {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-09-21T14:14:20Z",
    }
    one.answered(use, headers)
    wait_s = one.off_s("claude", NEED)
    told: list[float] = []
    for _ in range(6):
        one.missed(NEED)
        error = one.refusal("claude", NEED)
        assert error.retry_after_s is not None
        told.append(error.retry_after_s)
    # One a second comes back: six are told of six seconds, each of another moment.
    assert min(told) >= wait_s
    assert 2.0 < max(told) - wait_s < 7.0
    assert len({round(2 * moment) for moment in told}) >= 4
    # Whoever comes alone is told the time it takes.
    clock.now += 30.0
    _, use = await one.use(NEED)
    one.answered(use, {**headers, "anthropic-ratelimit-requests-reset": "2026-09-21T14:14:50Z"})
    clock.now += 0.2
    alone = one.refusal("claude", NEED).retry_after_s
    assert alone == pytest.approx(one.off_s("claude", NEED), abs=0.05)
