"""Keys of other gateways: recognised by a digest of the whole key, and by nothing else."""

import hashlib
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.shared import FOREIGN
from smg_mesh.state.api_keys import KeyRecord
from smg_node.access.api_key import digest_of, key_text
from smg_node.access.foreign_key import (
    foreign_digest,
    foreign_id,
    may_be_foreign,
    sha256_of,
    why_no_foreign_key,
)
from smg_node.access.identity import ANYBODY, Identity, KeyAuthenticator
from smg_node.core.errors import SmgError
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Guard, caller_digest
from unit.node.access.test_identity import EVERY, Asked, Source, key

LITELLM = "sk-lFxtVvDeVZNoDmTN8pEqKw0"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


def foreign(text: str = LITELLM, tenant: str = "acme", expires_ms: int = 0) -> KeyRecord:
    digest = foreign_digest(hashlib.sha256(text.encode()).digest())
    return KeyRecord(
        foreign_id(digest), tenant, "user", digest=digest, expires_ms=expires_ms, kind=FOREIGN
    )


def admitted(source: Source, credential: str | None, data: DataAccess = "auto") -> Identity:
    guard = Guard(KeyAuthenticator(source))
    return guard.admit(cast("HttpRequest", Asked(credential, "10.0.0.1")), "generate", data)


def status(source: Source, credential: str, data: DataAccess = "auto") -> int:
    with pytest.raises(SmgError) as caught:
        admitted(source, credential, data)
    assert credential not in str(caught.value)
    return caught.value.status


def test_a_foreign_key_is_found_by_what_its_owner_sends() -> None:
    source = Source(*EVERY, foreign())
    assert admitted(source, LITELLM).tenant == "acme"
    assert admitted(source, key("user")).key_id == "user"
    assert status(source, LITELLM + "x") == 401
    assert status(source, LITELLM.upper()) == 401


def test_what_gateways_keep_of_a_key_opens_nothing() -> None:
    record = foreign()
    source = Source(*EVERY, record)
    digest = hashlib.sha256(LITELLM.encode()).hexdigest()
    for guess in (digest, record.digest.hex(), key_text(record.id, digest), record.id):
        assert status(source, guess) == 401


def test_a_key_of_one_kind_is_none_of_the_other() -> None:
    # The record of an own key under the id of a foreign one, and the other way round.
    digest = foreign_digest(sha256_of(LITELLM))
    own = KeyRecord(foreign_id(digest), "t", "user", digest=digest)
    assert status(Source(*EVERY, own), LITELLM) == 401
    secret = "s" * 43
    strange = KeyRecord("k1", "t", "user", digest=digest_of(secret), kind=FOREIGN)
    assert status(Source(*EVERY, strange), key_text("k1", secret)) == 401
    newer = KeyRecord("k1", "t", "user", digest=digest_of(secret), kind="newer")
    assert status(Source(*EVERY, newer), key_text("k1", secret)) == 401


def test_an_expired_or_revoked_foreign_key_is_refused() -> None:
    source = Source(*EVERY, foreign(expires_ms=1))
    assert status(source, LITELLM) == 401
    gone = KeyRecord(foreign().id, "acme", "user", revoked_ms=5, kind=FOREIGN)
    assert status(Source(*EVERY, gone), LITELLM) == 401


@pytest.mark.parametrize("data", ["auto", "open"])
def test_where_data_is_open_any_credential_is_nobody_only_as_long_as_there_is_no_foreign_key(
    data: DataAccess,
) -> None:
    assert admitted(Source(), "sk-anything", data) is ANYBODY
    source = Source(foreign())
    assert admitted(source, None, data) is ANYBODY
    assert admitted(source, LITELLM, data).tenant == "acme"
    assert status(source, "sk-anything", data) == 401
    assert admitted(source, TOKEN, data) is ANYBODY
    revoked = Source(KeyRecord(foreign().id, "acme", "user", revoked_ms=5, kind=FOREIGN))
    assert status(revoked, LITELLM, data) == 401


def test_a_signed_token_is_never_tried_as_a_foreign_key() -> None:
    assert status(Source(*EVERY, foreign(TOKEN)), TOKEN) == 401
    assert not may_be_foreign(TOKEN)
    assert not may_be_foreign("eyJ..")
    assert not may_be_foreign("smg-anything")
    assert may_be_foreign("eyJ.x")
    assert may_be_foreign("sk-a.b.c")


def test_of_two_credentials_the_foreign_key_counts_and_names_the_caller() -> None:
    guard = Guard(KeyAuthenticator(Source(*EVERY, foreign())))
    asked = Asked("sk-of-another-service")
    asked.headers["x-api-key"] = LITELLM
    request = cast("HttpRequest", asked)
    asked.identity = guard.admit(request, "generate", "auto")
    assert asked.identity.tenant == "acme"
    alone = Asked(LITELLM)
    assert caller_digest(request) == caller_digest(cast("HttpRequest", alone))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("k" * 15, "guessed"),
        ("", "guessed"),
        ("k" * 1_025, "at most"),
        ("key with blanks in", "printable"),
        ("schlüssel-schlüssel", "printable"),
        ("smg-abc-" + "s" * 43, "made here"),
        (TOKEN, "signed token"),
    ],
)
def test_what_can_be_no_foreign_key_is_said_without_it(text: str, word: str) -> None:
    why = why_no_foreign_key(text)
    assert word in why
    assert not text or text not in why


@given(st.text(max_size=60))
def test_any_credential_is_a_foreign_key_or_refused(text: str) -> None:
    source = Source(*EVERY, foreign())
    if text != LITELLM:
        with pytest.raises(SmgError):
            KeyAuthenticator(source).identify(text)


@given(st.binary(min_size=32, max_size=32))
def test_ids_of_foreign_keys_have_their_own_form(key_sha256: bytes) -> None:
    key_id = foreign_id(foreign_digest(key_sha256))
    assert (len(key_id), key_id[0]) == (16, "f")
    assert key_id.isascii()
    assert key_id.islower()
    assert key_id.isalnum()
