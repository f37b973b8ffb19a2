"""Introspection: each token is asked about once at a time, few at a time, and no answer is never a pass."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from smg_node.access.identity import AccessError, Identity, KeysWantedError
from smg_node.access.tokens.introspection_memory import (
    ANSWERS_MAX,
    Introspected,
    IntrospectionMemory,
    read_introspection,
)
from smg_node.access.tokens.issuer import Introspection, Issuer
from smg_node.access.tokens.issuer_documents import DocumentError
from smg_node.access.tokens.opaque_tokens import OpaqueTokens, opaque_of
from smg_node.cluster.issuers.introspection import CALLS_MAX, WAITING_MAX, Introspections
from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
from smg_node.cluster.issuers.key_ports import IssuerError
from support.access.key_world import MovedClock, settled

NOW = 1_700_000_000_000
ASKED = Introspection("https://sso.example/introspect", "smg", "/secret")
CORP = Issuer(
    "corp",
    "https://sso.example",
    ("smg",),
    role_map=(("*", "user"),),
    tenant="/team",
    introspection=ASKED,
)
GOOD = {"active": True, "sub": "alice", "aud": "smg", "team": "acme"}


class Scene:
    """Opaque tokens of one process at an issuer that tests play."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.denied: set[str] = set()
        self.tasks = IssuerTasks()
        self.calls = Introspections(b"k" * 32, self.clock.now_ms, self.tasks.spawn, self._ask)
        self.tokens = OpaqueTokens(CORP, self.calls, lambda _alias, sub, _ms: sub in self.denied)

    async def _ask(self, issuer: Issuer, token: str) -> bytes:
        self.asked.append(token)
        await self.gate.wait()
        answer = self.answers.get(token, {"active": False})
        if answer is None:
            raise IssuerError("it cannot be reached: connection refused")
        return json.dumps(answer).encode()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what is asked beside requests meanwhile."""
        async with asyncio.TaskGroup() as group:
            loop = group.create_task(self.tasks.run(()))
            await settled()
            yield
            loop.cancel()

    async def identify(self, token: str) -> Identity:
        """Ask as the door does: once more after what is wanted is there."""
        try:
            return self.tokens(token)
        except KeysWantedError as wanted:
            ready = cast("asyncio.Future[None]", wanted.ready)
            await asyncio.wait_for(asyncio.shield(ready), 5)
            return self.tokens(token)

    async def refused(self, token: str) -> tuple[int, str]:
        """Return status and code of a refusal."""
        with pytest.raises(AccessError) as caught:
            await self.identify(token)
        assert token not in str(caught.value) + repr(caught.value)
        return caught.value.status, caught.value.code


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """One whose calls run."""
    made = Scene()
    async with made.running():
        yield made


async def test_a_good_token_is_asked_about_once_a_minute(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = GOOD
    found = await scene.identify("zq-t-0paqu3")
    assert (found.tenant, found.role, found.subject) == ("acme", "user", "token:corp/alice")
    assert found.expires_ms == scene.clock.now_ms() + 60_000
    assert await scene.identify("zq-t-0paqu3") == found
    scene.clock.seconds += 60
    await scene.identify("zq-t-0paqu3")
    assert scene.asked == ["zq-t-0paqu3", "zq-t-0paqu3"]


async def test_it_counts_no_longer_than_it_lives(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = {**GOOD, "exp": scene.clock.now_ms() / 1000 + 7}
    assert (await scene.identify("zq-t-0paqu3")).expires_ms == scene.clock.now_ms() + 7_000
    scene.clock.seconds += 7
    assert await scene.refused("zq-t-0paqu3") == (401, "inactive_token")


async def test_a_bad_token_is_asked_about_again_after_ten_seconds(scene: Scene) -> None:
    assert await scene.refused("zq-t-0paqu3") == (401, "inactive_token")
    scene.answers["zq-t-0paqu3"] = GOOD
    scene.clock.seconds += 9.9
    assert await scene.refused("zq-t-0paqu3") == (401, "inactive_token")
    scene.clock.seconds += 0.1
    assert (await scene.identify("zq-t-0paqu3")).tenant == "acme"


async def test_no_answer_is_a_503_and_asked_again_after_a_second(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = None
    assert await scene.refused("zq-t-0paqu3") == (503, "issuer_unreachable")
    assert await scene.refused("zq-t-0paqu3") == (503, "issuer_unreachable")
    assert scene.asked == ["zq-t-0paqu3"]
    assert scene.calls.last_error("corp") == "it cannot be reached: connection refused"
    scene.clock.seconds += 1
    scene.answers["zq-t-0paqu3"] = GOOD
    assert (await scene.identify("zq-t-0paqu3")).tenant == "acme"
    assert scene.calls.last_error("corp") == ""


@pytest.mark.parametrize(
    "answer", [[], "x", {}, {"active": "true"}, {"active": 1}, {"active": None}]
)
async def test_what_is_no_answer_is_none(scene: Scene, answer: Any) -> None:
    scene.answers["zq-t-0paqu3"] = answer
    assert await scene.refused("zq-t-0paqu3") == (503, "issuer_unreachable")


async def test_all_who_have_the_token_wait_for_one_call(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = GOOD
    scene.gate.clear()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(scene.identify("zq-t-0paqu3")) for _ in range(20)]
        await settled()
        assert scene.asked == ["zq-t-0paqu3"]
        scene.gate.set()
    assert len({one.result().key_id for one in waiting}) == 1


async def test_an_answer_that_was_on_its_way_when_issuers_changed_does_not_count(
    scene: Scene,
) -> None:
    scene.gate.clear()
    scene.answers["t"] = GOOD
    async with scene.running():
        with pytest.raises(KeysWantedError) as wanted:
            scene.tokens("t")
        await settled()
        scene.calls.clear()
        scene.gate.set()
        await cast("asyncio.Future[None]", wanted.value.ready)
        scene.answers["t"] = {"active": False}
        with pytest.raises(AccessError) as refused:
            await scene.identify("t")
        assert (refused.value.code, scene.asked) == ("inactive_token", ["t", "t"])


async def test_few_calls_are_in_flight_and_more_than_can_wait_are_turned_away(scene: Scene) -> None:
    scene.gate.clear()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(scene.refused(f"zq-{at}-t")) for at in range(WAITING_MAX)]
        await settled()
        assert len(scene.asked) == CALLS_MAX
        assert await scene.refused("one too many") == (503, "issuer_unreachable")
        scene.gate.set()
    assert {one.result() for one in waiting} == {(401, "inactive_token")}


async def test_signed_tokens_and_absurd_ones_never_go_there(scene: Scene) -> None:
    for token in ("eyJh.eyJ.sig", "eyJh.a.b.c.d", "x" * 9_000, "\u00e4"):
        assert await scene.refused(token) == (401, "inactive_token")
    assert scene.asked == []


@pytest.mark.parametrize(
    ("claims", "refusal"),
    [
        ({"aud": "account"}, (401, "wrong_audience")),
        ({"aud": ["x", "smg"]}, None),
        ({"aud": None}, (401, "wrong_audience")),
        ({"iss": "https://other.example"}, (401, "unknown_issuer")),
        ({"iss": "https://sso.example"}, None),
        ({"team": "no tenant"}, (403, "tenant_not_usable")),
        ({"sub": 7}, (401, "invalid_token")),
    ],
)
async def test_its_claims_count_as_those_of_a_signed_one(
    scene: Scene, claims: dict[str, Any], refusal: tuple[int, str] | None
) -> None:
    scene.answers["zq-t-0paqu3"] = {**GOOD, **claims}
    if refusal is None:
        assert (await scene.identify("zq-t-0paqu3")).tenant == "acme"
    else:
        assert await scene.refused("zq-t-0paqu3") == refusal


async def test_a_token_without_audience_is_for_its_client_and_of_it(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = {"active": True, "client_id": "smg", "team": "acme"}
    assert (await scene.identify("zq-t-0paqu3")).subject == "token:corp/smg"
    scene.answers["zq-u-0paqu3"] = {
        "active": True,
        "client_id": "other",
        "sub": "x",
        "team": "acme",
    }
    assert await scene.refused("zq-u-0paqu3") == (401, "wrong_audience")
    scene.answers["zq-v-0paqu3"] = {"active": True, "sub": "x", "team": "acme"}
    assert await scene.refused("zq-v-0paqu3") == (401, "wrong_audience")


async def test_a_denied_subject_is_refused(scene: Scene) -> None:
    scene.answers["zq-t-0paqu3"] = GOOD
    await scene.identify("zq-t-0paqu3")
    scene.denied.add("alice")
    assert await scene.refused("zq-t-0paqu3") == (401, "denied_token")


def test_only_one_issuer_can_be_asked_about_tokens_that_do_not_say_whose_they_are() -> None:
    scene_free: Any = object()
    plain = Issuer("plain", "https://plain.example", ("smg",), role_map=(("*", "user"),))
    nobody = lambda _alias, _sub, _ms: False  # noqa: E731  # a port
    assert opaque_of({"corp": CORP, "plain": plain}, scene_free, nobody) is not None
    assert opaque_of({"plain": plain}, scene_free, nobody) is None
    assert opaque_of({"corp": CORP, "two": CORP}, scene_free, nobody) is None


def test_the_memory_holds_no_token_and_never_grows_over_its_size() -> None:
    memory, other = IntrospectionMemory(b"a" * 32), IntrospectionMemory(b"b" * 32)
    assert memory.place("corp", "zq-t-0paqu3") != other.place("corp", "zq-t-0paqu3")
    assert memory.place("corp", "zq-t-0paqu3") != memory.place("cor", "pt")
    for at in range(ANSWERS_MAX + 5):
        memory.put(memory.place("corp", f"t{at}"), Introspected(None, NOW))
    assert len(memory) == ANSWERS_MAX
    assert memory.get(memory.place("corp", "t0"), NOW - 1) is None
    assert memory.get(memory.place("corp", "t9"), NOW - 1) is not None


@pytest.mark.parametrize("exp", ["1e400", "-1e400", "-5", "0", "1e300", "true", '"x"', "null"])
def test_odd_ends_are_bounded_or_refused(exp: str) -> None:
    body = b'{"active":true,"exp":' + exp.encode() + b"}"
    try:
        found = read_introspection(body, NOW)
    except DocumentError:
        return
    assert NOW < found.until_ms <= NOW + 60_000
