"""Checkpoint tokens open their place for their tenant, for a while; nothing else does."""

import base64

import pytest

from smg_node.core.errors import SmgError
from smg_node.history.service.checkpoint_tokens import LIFE_MS, Checkpoint, CheckpointTokens
from support.history.history_world import PlainVault

PLACE = Checkpoint("int_1", 4)


def test_a_token_opens_its_place_for_its_tenant_and_for_ten_minutes() -> None:
    tokens = CheckpointTokens(PlainVault())
    token = tokens.issue(PLACE, tenant="acme", now_ms=1_000)
    assert tokens.opened(token, tenant="acme", now_ms=1_000 + LIFE_MS) == PLACE
    assert token.isascii()


@pytest.mark.parametrize("number", [-1, 0, 2**31])
@pytest.mark.parametrize("leaving", [False, True])
def test_a_token_says_whether_its_node_drained(number: int, leaving: bool) -> None:
    tokens, place = CheckpointTokens(PlainVault()), Checkpoint("int_1", number, leaving)
    token = tokens.issue(place, tenant="acme", now_ms=1_000)
    assert tokens.opened(token, tenant="acme", now_ms=1_000) == place


def test_a_token_of_a_node_that_says_nothing_about_draining_is_taken() -> None:
    vault = PlainVault()
    sealed = vault.seal('["checkpoint","acme","int_1",4,1000]')
    token = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    assert CheckpointTokens(vault).opened(token, tenant="acme", now_ms=1_000) == PLACE


@pytest.mark.parametrize(
    ("tenant", "now_ms", "cut", "code"),
    [
        ("other", 1_000, 0, "invalid_continuation_token"),
        ("acme", 1_001 + LIFE_MS, 0, "stream_expired"),
        ("acme", 1_000, 9, "invalid_continuation_token"),
    ],
)
def test_any_other_token_is_refused(tenant: str, now_ms: int, cut: int, code: str) -> None:
    tokens = CheckpointTokens(PlainVault())
    token = tokens.issue(PLACE, tenant="acme", now_ms=1_000)
    with pytest.raises(SmgError) as caught:
        tokens.opened(token[cut:], tenant=tenant, now_ms=now_ms)
    assert (caught.value.status, caught.value.code) == (400, code)


@pytest.mark.parametrize("token", ["", "é", "A" * 5_000, "bm9uc2Vuc2U", "===="])
def test_garbage_is_no_token(token: str) -> None:
    with pytest.raises(SmgError) as caught:
        CheckpointTokens(PlainVault()).opened(token, tenant="acme", now_ms=1_000)
    assert caught.value.code == "invalid_continuation_token"
