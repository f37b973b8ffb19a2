"""Keys, tokens and other credentials, each tried by its look alone."""

import asyncio
from typing import cast

import pytest

from smg_mesh.state.api_keys import KeyRecord
from smg_node.access.api_key import digest_of, key_text
from smg_node.access.authenticators import Authenticators, Opaque
from smg_node.access.identity import (
    ANYBODY,
    AccessError,
    Identity,
    KeyAuthenticator,
    KeysWantedError,
)
from smg_node.access.tokens.token_authenticator import TokenAuthenticator
from smg_node.access.tokens.verified_tokens import SECRET_BYTES, VerifiedTokens
from smg_node.core.access.permissions import Needed
from smg_node.core.errors import SmgError
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Guard, caller_digest
from support.access.signed_tokens import NOW_MS, StaticKeys, claims, issuer, key_set, signing_key

KEY, NEW = signing_key("ES256"), signing_key("ES256", "new")
SECRET = "s" * 43
GOOD = KEY.token(claims())
ADMIN = KEY.token(claims(realm_access={"roles": ["gateway-admin"]}))
FOREIGN = KEY.token(claims(iss="https://elsewhere.example"))
STRANGER = signing_key("ES256", "stranger").token(claims(), kid="one")
OPAQUE = Identity("t0", "opaque", "user", 0, "token:corp/opaque")


class Source:
    """One key of a user, and no admin key."""

    closed = False
    foreign = False
    version = 5

    def __init__(self, *, settled: bool = True) -> None:
        self.settled = settled

    def get(self, key_id: str) -> KeyRecord | None:
        return (
            KeyRecord("one", "keys", "user", digest=digest_of(SECRET)) if key_id == "one" else None
        )

    def now_ms(self) -> int:
        return NOW_MS

    def __len__(self) -> int:
        return 1


class Line:
    """As much of a connection as the guard looks at."""

    certificate = None


class Asked:
    """As much of a request as the guard looks at."""

    def __init__(self, *given: str) -> None:
        names = ("authorization", "x-api-key")
        self.headers = {"host": "127.0.0.1"}
        for name, one in zip(names, given, strict=False):
            self.headers[name] = f"Bearer {one}" if name == "authorization" else one
        self.peer = "127.0.0.1"
        self.line = Line()
        self.identity = ANYBODY
        self.route = None


def authenticators(
    *, settled: bool = True, opaque: Opaque | None = None, keys: StaticKeys | None = None
) -> Authenticators:
    source = StaticKeys(corp=key_set(KEY)) if keys is None else keys
    verified = VerifiedTokens(b"s" * SECRET_BYTES)
    tokens = TokenAuthenticator((issuer(),), source, verified, lambda: NOW_MS)
    return Authenticators(KeyAuthenticator(Source(settled=settled)), tokens, opaque)


def admitted(
    *given: str, access: Needed = "generate", data: DataAccess = "auto", settled: bool = True
) -> Identity:
    guard = Guard(authenticators(settled=settled))
    return guard.admit(cast("HttpRequest", Asked(*given)), access, data)


def refused(
    *given: str, access: Needed = "generate", data: DataAccess = "auto", settled: bool = True
) -> SmgError:
    with pytest.raises(SmgError) as caught:
        admitted(*given, access=access, data=data, settled=settled)
    return caught.value


def test_keys_and_tokens_are_told_apart() -> None:
    both = authenticators()
    assert both.identify(key_text("one", SECRET)).tenant == "keys"
    assert both.identify(GOOD).tenant == "acme"
    for other in ("smg-one-wrong", "sk-anything", "eyJ.eyJ", ""):
        with pytest.raises(SmgError) as caught:
            both.identify(other)
        assert caught.value.code == "invalid_api_key"


def test_an_issuer_closes_the_node_as_an_admin_key_does() -> None:
    both = authenticators()
    assert both.closed
    assert not both.empty
    assert refused().code == "invalid_api_key"
    assert refused(access="keys").status == 401
    assert refused("sk-anything").status == 401
    assert admitted(GOOD).tenant == "acme"
    assert admitted(key_text("one", SECRET)).tenant == "keys"


def test_roles_of_tokens_open_routes() -> None:
    assert admitted(GOOD, access="look").role == "operator"
    assert admitted(ADMIN, access="keys").role == "admin"
    error = refused(GOOD, access="keys")
    assert (error.status, error.challenge) == (403, 'error="insufficient_scope"')
    assert error.message == "this needs the permission keys; the token sent has role operator"


def test_an_open_node_judges_only_tokens_of_its_issuers() -> None:
    assert admitted(data="open") is ANYBODY
    assert admitted("sk-anything", data="open") is ANYBODY
    assert admitted(FOREIGN, data="open") is ANYBODY
    assert admitted(GOOD, data="open").tenant == "acme"
    assert refused(STRANGER, data="open").code == "bad_signature"
    assert refused(FOREIGN).code == "unknown_issuer"


def test_a_token_is_judged_before_the_cluster_is_known() -> None:
    assert admitted(GOOD, settled=False).tenant == "acme"
    assert refused(STRANGER, settled=False).code == "bad_signature"
    assert refused("smg-two-" + SECRET, settled=False).code == "joining"


def test_of_two_credentials_the_good_one_counts() -> None:
    key = key_text("one", SECRET)
    assert admitted(STRANGER, key).tenant == "keys"
    assert admitted("sk-anything", GOOD).tenant == "acme"
    assert refused(GOOD, key).code == "conflicting_credentials"


async def test_a_good_key_does_not_wait_for_what_came_beside_it() -> None:
    keys = StaticKeys(corp=key_set(KEY))
    keys.fetching = asyncio.get_running_loop().create_future()
    guard = Guard(authenticators(keys=keys))
    late, key = NEW.token(claims()), key_text("one", SECRET)
    both = cast("HttpRequest", Asked(late, key))
    assert guard.admit(both, "generate", "auto").tenant == "keys"
    neither = cast("HttpRequest", Asked(late, "sk-anything"))
    with pytest.raises(KeysWantedError):
        guard.admit(neither, "generate", "auto")


def test_an_issuer_is_asked_about_no_more_than_one_of_several_credentials() -> None:
    asked: list[str] = []

    def opaque(credential: str) -> Identity:
        asked.append(credential)
        return OPAQUE

    guard = Guard(authenticators(opaque=opaque))

    def admit(*given: str) -> Identity:
        return guard.admit(cast("HttpRequest", Asked(*given)), "generate", "auto")

    # Beside a key or a token of ours, what another service knows is nobody's business.
    assert admit("of-another-service", key_text("one", SECRET)).tenant == "keys"
    assert admit(GOOD, "of-another-service").tenant == "acme"
    assert asked == []
    assert admit("opaque", "of-another-service") is OPAQUE
    assert admit("smg-one-wrong", "opaque") is OPAQUE
    assert asked == ["opaque", "opaque"]


def test_a_token_of_an_issuer_that_fails_is_nothing_else() -> None:
    asked: list[str] = []

    def opaque(credential: str) -> Identity:
        asked.append(credential)
        return OPAQUE

    both = authenticators(opaque=opaque)
    for token in (STRANGER, FOREIGN, "eyJ.eyJ.sig"):
        with pytest.raises(AccessError):
            both.identify(token)
    with pytest.raises(SmgError):
        both.identify("smg-one-wrong")
    assert asked == []
    assert both.identify("opaque") is OPAQUE
    assert asked == ["opaque"]


def test_versions_of_keys_and_tokens_both_count() -> None:
    keys = StaticKeys(corp=key_set(KEY))
    both = authenticators(keys=keys)
    before = both.version
    keys.put("corp", key_set(KEY))
    assert both.version == before + 1


def test_the_next_token_of_a_subject_is_of_the_same_caller() -> None:
    digests = set()
    for token in (GOOD, KEY.token(claims(exp=NOW_MS // 1000 + 60))):
        asked = Asked(token)
        asked.identity = admitted(token)
        digests.add(caller_digest(cast("HttpRequest", asked)))
    asked = Asked(key_text("one", SECRET))
    asked.identity = admitted(key_text("one", SECRET))
    assert len(digests) == 1
    assert caller_digest(cast("HttpRequest", asked)) not in digests
