"""A target leaves out fields that its model refused, and one client's mistake teaches it nothing else; what its model
thought goes back to it.
"""

from typing import Any

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import BlockEnd, Event
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.vendor_side import Dressed
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.providers.account import ProviderAccount
from smg_node.providers.provider_book import ProviderBook
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret
from smg_node.providers.target import CLIENT_KEY_HEADER, VendorTarget
from support.answers.vendor_responses import BEGIN, response, said, thought


class Clock:
    def now_ms(self) -> int:
        return 1_790_000_000_000

    def monotonic_s(self) -> float:
        return 1.0


class Sources:
    def file(self, path: str) -> str:
        raise FileNotFoundError(path)

    def env(self, name: str) -> str | None:
        return None


def target(kind: str = "openai", **more: Any) -> VendorTarget:
    spec = ProviderSpec("o", kind, **more)
    secrets = ProviderSecrets((Secret("sk-node"),))
    account = ProviderAccount(spec, secrets, Sources(), Clock(), lambda _spec, _secrets: None)
    return VendorTarget(account, "gpt", "gpt", Clock())


async def sent(one: VendorTarget, headers: dict[str, str] | None = None) -> Dressed:
    return await one.written(
        "chat", {"model": "gpt", "messages": []}, headers=headers or {}, prompt_tokens=3
    )


def error(code: str, param: str) -> bytes:
    return msgspec.json.encode({"error": {"message": "no", "code": code, "param": param}})


@pytest.mark.parametrize(
    ("code", "param", "learnt"),
    [
        ("unsupported_value", "temperature", True),
        ("unsupported_parameter", "max_tokens", True),
        ("unsupported_parameter", "reasoning.effort", True),
        ("unsupported_value", "messages", False),
        ("unsupported_parameter", "tools", False),
        ("unsupported_value", "reasoning_effort", False),
        ("unsupported_value", "messages[0].role", False),
        ("invalid_value", "temperature", False),
        ("unsupported_parameter", "", False),
    ],
)
async def test_only_what_no_request_needs_is_left_out_from_then_on(
    code: str, param: str, learnt: bool
) -> None:
    one = target()
    dressed = await sent(one)
    found = one.refused(400, {}, error(code, param), dressed)
    assert found.anew is learnt
    assert one.options("chat").lacks == (frozenset({param}) if learnt else frozenset())
    again = one.refused(400, {}, error(code, param), await sent(one))
    assert again.anew is False


async def test_a_place_rests_as_long_as_its_account_is_off() -> None:
    """Whoever waits for a prompt's cache waits for all buckets that the call itself is to find enough in."""
    one = target("anthropic")
    told = {"limit": "1000", "remaining": "400", "reset": "2026-09-21T14:14:00Z"}
    headers = {f"anthropic-ratelimit-input-tokens-{part}": value for part, value in told.items()}
    one.account.answered((await one.account.use({}))[1], headers)
    [place] = one.cache_places(700.0)
    assert place.wait_s == one.off_s(700) > 0


async def test_a_clients_own_key_goes_only_where_it_is_taken() -> None:
    own = {CLIENT_KEY_HEADER: "sk-client"}
    assert (await sent(target(), own)).headers["authorization"] == "Bearer sk-node"
    theirs = await sent(target(client_keys=True), own)
    assert theirs.headers["authorization"] == "Bearer sk-client"
    assert CLIENT_KEY_HEADER not in theirs.headers


async def test_a_refused_client_key_is_the_clients_error_and_turns_nothing_off() -> None:
    one = target(client_keys=True)
    dressed = await sent(one, {CLIENT_KEY_HEADER: "sk-client"})
    found = one.refused(401, {}, b"{}", dressed).error
    assert isinstance(found, SmgError)
    assert found.code == "provider_key_refused"
    assert one.off_s() == 0.0


@pytest.mark.parametrize(("kind", "issuer"), [("openai_like", "o"), ("openai", "openai")])
def test_what_a_model_thought_is_its_vendors_wherever_it_is_asked_for(
    kind: str, issuer: str
) -> None:
    """The vendor's name of the model says nothing at a vendor of its own: listener and writer name the same issuer."""
    one, out = target(kind, base="http://127.0.0.1:9/v1"), list[Event]()
    listener = one.dialect("responses").listen(BEGIN, prompt_tokens=1)
    body = response(thought("so", data="ZW5j"), said("x"), model="gpt")
    listener.feed_whole(msgspec.json.encode(body), out)
    [state] = [state for event in out if isinstance(event, BlockEnd) for state in event.opaque]
    assert state.issuer == one.options("responses").issuer == issuer


@pytest.mark.parametrize(
    ("status", "words", "code", "said"),
    [
        (StatusCode.UNAVAILABLE, "failed to connect: refused", "provider_unreachable", "reached"),
        (StatusCode.UNAVAILABLE, "connection lost: reset", "provider_unreachable", "was lost"),
        (StatusCode.DEADLINE_EXCEEDED, "the connection timed out", "upstream_timeout", "too long"),
    ],
)
def test_a_connection_that_fails_is_told_with_the_providers_name(
    status: StatusCode, words: str, code: str, said: str
) -> None:
    book = ProviderBook(EngineOptions(), Clock(), lambda _work, name: pytest.fail(name))
    spec = ProviderSpec("oai", "openai")
    book.update({"oai": (spec, ProviderSecrets((Secret("k"),)))})
    target = book.open("oai", "gpt", public="gpt")
    error = target._broken(TransportError(status, words))
    assert error.code == code
    assert said in error.message
    assert ("'oai'" in error.message) == (code == "provider_unreachable")
