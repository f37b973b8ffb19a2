"""Who may ask what, in every state of the keys."""

import contextlib
import hmac
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given as anything
from hypothesis import strategies as st

from smg_mesh.state.api_keys import KeyRecord
from smg_node.access import identity
from smg_node.access.api_key import digest_of, key_text
from smg_node.access.identity import (
    ANYBODY,
    LOCAL,
    Identity,
    KeyAuthenticator,
    Role,
)
from smg_node.core.access.permissions import Needed
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Guard, caller_digest

SECRETS = {role: f"{role}-{'s' * 40}" for role in ("user", "operator", "admin")}
NOW = 1_700_000_000_000


class Source:
    """Keys in memory."""

    def __init__(self, *records: KeyRecord) -> None:
        self.records = {record.id: record for record in records}
        self.settled = True
        self.at_ms = NOW
        self.version = 0

    @property
    def closed(self) -> bool:
        return any(record.role == "admin" for record in self.records.values())

    @property
    def foreign(self) -> bool:
        return any(record.foreign for record in self.records.values())

    def get(self, key_id: str) -> KeyRecord | None:
        return self.records.get(key_id)

    def now_ms(self) -> int:
        return self.at_ms

    def __len__(self) -> int:
        return len(self.records)


def record(role: Role, *, expires_ms: int = 0, revoked: bool = False) -> KeyRecord:
    digest = b"" if revoked else digest_of(SECRETS[role])
    tenant = "" if role == "admin" else "acme"
    return KeyRecord(role, tenant, role, digest=digest, expires_ms=expires_ms)


def key(role: Role) -> str:
    return key_text(role, SECRETS[role])


@dataclass
class Line:
    """As much of a connection as the guard looks at."""

    certificate: None = None


class Asked:
    """As much of a request as the guard looks at."""

    def __init__(self, given: str | None, peer: str = "127.0.0.1") -> None:
        self.headers = {"host": "127.0.0.1"}
        if given is not None:
            self.headers["authorization"] = f"Bearer {given}"
        self.peer = peer
        self.line = Line()
        self.identity = ANYBODY
        self.route = None


def admitted(
    source: Source,
    given: str | None,
    access: Needed = "generate",
    data: DataAccess = "auto",
    peer: str = "10.0.0.1",
) -> Identity:
    guard = Guard(KeyAuthenticator(source))
    return guard.admit(cast("HttpRequest", Asked(given, peer)), access, data)


def refused(
    source: Source,
    given: str | None,
    access: Needed = "generate",
    data: DataAccess = "auto",
    peer: str = "10.0.0.1",
) -> SmgError:
    with pytest.raises(SmgError) as caught:
        admitted(source, given, access, data, peer)
    if given:
        assert given not in str(caught.value)
    return caught.value


EVERY = (record("user"), record("operator"), record("admin"))


# ── No key exists ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("given", [None, "sk-anything", key("user"), key("admin")])
def test_without_any_key_data_is_open_whatever_is_sent(given: str | None) -> None:
    assert admitted(Source(), given) is ANYBODY
    assert admitted(Source(), given, "public") is ANYBODY


@pytest.mark.parametrize("access", ["look", "workers"])
@pytest.mark.parametrize("given", [None, "sk-anything", key("admin")])
def test_without_an_admin_key_this_machine_alone_administers(
    access: Needed, given: str | None
) -> None:
    source = Source(record("user"), record("operator"))
    assert admitted(source, given, access, peer="127.0.0.1") is LOCAL
    assert refused(source, given, access).kind is ErrorKind.FORBIDDEN


def test_a_tenants_key_counts_before_there_is_an_admin_key() -> None:
    source = Source(record("user"))
    assert admitted(source, key("user")) == Identity("user", "acme", "user")
    assert admitted(source, None) is ANYBODY
    assert admitted(source, "sk-of-another-house") is ANYBODY
    assert refused(source, key("operator")).kind is ErrorKind.UNAUTHENTICATED


# ── An admin key exists ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("user", {"generate"}),
        ("operator", {"generate", "look"}),
        ("admin", {"generate", "look", "workers"}),
    ],
)
def test_each_role_may_what_the_ones_below_it_may(role: Role, allowed: set[str]) -> None:
    source = Source(*EVERY)
    accesses: tuple[Needed, ...] = ("generate", "look", "workers")
    for access in accesses:
        if access in allowed:
            assert admitted(source, key(role), access).role == role
        else:
            error = refused(source, key(role), access, peer="127.0.0.1")
            assert (error.status, error.code) == (403, "insufficient_permissions")


@pytest.mark.parametrize("access", ["generate", "look", "workers"])
@pytest.mark.parametrize("peer", ["10.0.0.1", "127.0.0.1", ""])
@pytest.mark.parametrize("given", [None, "", "sk-x", "smg-nobody-" + "s" * 43])
def test_the_first_admin_key_closes_everything_also_to_this_machine(
    access: Needed, peer: str, given: str | None
) -> None:
    error = refused(Source(record("admin")), given, access, peer=peer)
    assert (error.status, error.code) == (401, "invalid_api_key")


def test_public_routes_stay_open() -> None:
    assert admitted(Source(*EVERY), None, "public") is ANYBODY


def test_a_secret_of_another_key_is_not_good() -> None:
    source = Source(*EVERY)
    assert refused(source, key_text("user", SECRETS["admin"])).status == 401
    assert refused(source, key("user") + "x").status == 401
    assert refused(source, key("user")[:-1]).status == 401


def test_an_expired_key_is_told_so_only_with_its_secret() -> None:
    source = Source(record("admin"), record("user", expires_ms=NOW + 1))
    assert admitted(source, key("user")).tenant == "acme"
    source.at_ms = NOW + 1
    error = refused(source, key("user"))
    assert (error.status, error.code) == (401, "expired_api_key")
    wrong = refused(source, key_text("user", "w" * 43))
    assert (wrong.status, wrong.code) == (401, "invalid_api_key")


def test_a_revoked_key_fits_nothing_and_keeps_the_node_closed() -> None:
    source = Source(record("admin", revoked=True), record("user", revoked=True))
    assert refused(source, key("user")).status == 401
    assert refused(source, key("admin"), "workers", peer="127.0.0.1").status == 401


# ── What the configuration says of data ──────────────────────────────────────


def test_data_may_stay_open_and_then_keys_of_ours_must_still_be_good() -> None:
    source = Source(*EVERY)
    assert admitted(source, None, data="open") is ANYBODY
    assert admitted(source, "sk-none", data="open") is ANYBODY
    assert admitted(source, key("user"), data="open").tenant == "acme"
    assert refused(source, "smg-gone-" + "s" * 43, data="open").status == 401
    assert refused(source, None, "look", data="open").status == 401


def test_data_may_be_closed_before_there_is_any_key() -> None:
    assert refused(Source(), None, data="closed").status == 401
    assert refused(Source(), "sk-x", data="closed").status == 401
    assert admitted(Source(), None, "look", data="closed", peer="127.0.0.1") is LOCAL


# ── A node that does not know its cluster yet ────────────────────────────────


def test_a_node_that_joins_does_not_take_its_ignorance_for_openness() -> None:
    source = Source()
    source.settled = False
    for given in (None, "sk-x", key("user")):
        error = refused(source, given)
        assert (error.status, error.code, error.retry_after_s) == (503, "joining", 1.0)
    assert admitted(source, None, data="open") is ANYBODY
    assert admitted(source, None, "workers", peer="127.0.0.1") is LOCAL
    source.records = {"admin": record("admin")}
    assert refused(source, key("user")).code == "joining"
    assert refused(source, None).status == 401
    assert admitted(source, key("admin"), "workers").role == "admin"
    source.settled = True
    assert refused(source, key("user")).status == 401


# ── Two keys in one request ──────────────────────────────────────────────────

FOREIGN = "sk-of-another-house"
STRANGER = "smg-nobody-" + "s" * 43


def carrying(*given: str) -> HttpRequest:
    """Return a request with these keys, in the order in which their headers are looked at."""
    asked = Asked(None)
    for name, one in zip(("authorization", "x-api-key", "x-goog-api-key"), given, strict=False):
        asked.headers[name] = f"Bearer {one}" if name == "authorization" else one
    return cast("HttpRequest", asked)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((key("user"), FOREIGN), "user"),
        ((FOREIGN, key("user")), "user"),
        ((FOREIGN, STRANGER, key("operator")), "operator"),
        ((key("user"), key("user")), "user"),
        ((key("user"), key_text("admin", "w" * 43)), "user"),
        ((key("user"), key("operator")), 400),
        ((FOREIGN, key("user"), key("operator")), 400),
        ((FOREIGN, STRANGER), 401),
        ((STRANGER, FOREIGN), 401),
    ],
)
def test_of_two_keys_the_one_that_is_a_key_here_counts(
    given: tuple[str, ...], expected: str | int
) -> None:
    guard = Guard(KeyAuthenticator(Source(*EVERY)))
    if isinstance(expected, str):
        assert guard.admit(carrying(*given), "generate", "auto").key_id == expected
        return
    with pytest.raises(SmgError) as caught:
        guard.admit(carrying(*given), "generate", "auto")
    assert caught.value.status == expected
    assert not any(one in caught.value.message for one in given)


def test_a_key_that_expired_is_not_one_of_two() -> None:
    source = Source(record("admin"), record("user", expires_ms=NOW), record("operator"))
    guard = Guard(KeyAuthenticator(source))
    both = carrying(key("user"), key("operator"))
    assert guard.admit(both, "generate", "auto").key_id == "operator"
    with pytest.raises(SmgError) as caught:
        guard.admit(carrying(key("user"), FOREIGN), "generate", "auto")
    assert caught.value.code == "expired_api_key"


@pytest.mark.parametrize("given", [(FOREIGN, "sk-x"), (FOREIGN, STRANGER), (FOREIGN, key("user"))])
def test_where_no_key_is_needed_foreign_ones_do_no_harm_in_any_number(
    given: tuple[str, ...],
) -> None:
    guard = Guard(KeyAuthenticator(Source()))
    assert guard.admit(carrying(*given), "generate", "auto") is ANYBODY
    with_a_key = Guard(KeyAuthenticator(Source(record("operator"))))
    assert with_a_key.admit(carrying(*given), "generate", "auto") is ANYBODY


def test_every_key_of_a_request_is_looked_at_whatever_the_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(identity, "compare_digest", compare)
    guard = Guard(KeyAuthenticator(Source(*EVERY)))
    wrong = key_text("operator", "w" * 43)
    for given in ((key("user"), wrong), (wrong, key("user")), (wrong, STRANGER)):
        compared.clear()
        with contextlib.suppress(SmgError):
            guard.admit(carrying(*given), "generate", "auto")
        # Each once to find the one that counts, and that one once more to admit it.
        assert len(compared) == 3


@pytest.mark.parametrize(
    ("given", "key_id", "counting"),
    [
        ((key("user"),), "user", key("user")),
        ((FOREIGN, key("user")), "user", key("user")),
        ((key("user"), FOREIGN), "user", key("user")),
        ((FOREIGN, STRANGER), "", FOREIGN),
        ((FOREIGN,), "", FOREIGN),
    ],
)
def test_a_client_is_known_by_the_key_that_counts(
    given: tuple[str, ...], key_id: str, counting: str
) -> None:
    def digest(*keys: str) -> str:
        asked = Asked(None)
        asked.identity = Identity(key_id, "acme", "user")
        asked.headers |= carrying(*keys).headers
        return caller_digest(cast("HttpRequest", asked))

    assert digest(*given) == digest(counting)
    assert digest() == ""


# ── Time and garbage ─────────────────────────────────────────────────────────


def test_known_and_unknown_ids_take_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(identity, "compare_digest", compare)
    source = Source(*EVERY)
    for given in (key("user"), key_text("user", "w" * 43), key_text("nobody", "w" * 43)):
        with contextlib.suppress(SmgError):
            admitted(source, given)
    assert len(compared) == 3
    assert all(len(one) == len(other) == 32 for one, other in compared)


@anything(st.text(max_size=300))
def test_any_text_is_refused_without_another_error(given_text: str) -> None:
    source = Source(*EVERY)
    with pytest.raises(SmgError) as caught:
        KeyAuthenticator(source).identify(given_text)
    assert caught.value.status == 401
    assert caught.value.message == "the key is not valid here"
