"""Certificates of clients at the guard: who they let in, beside keys and without."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from smg_mesh.state.api_keys import KeyRecord
from smg_node.access.api_key import digest_of, key_text
from smg_node.access.certificates import CertificateRule, CertificateRules, ClientCertificate
from smg_node.access.identity import ANYBODY, Identity, KeyAuthenticator
from smg_node.core.access.permissions import Needed
from smg_node.core.errors import SmgError
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Guard, caller_digest

SECRET = "s" * 40
KEY = key_text("user", SECRET)
ADMIN = KeyRecord("admin", "", "admin", digest=digest_of("a" * 40))
USER = KeyRecord("user", "acme", "user", digest=digest_of(SECRET))


class Source:
    """Keys in memory."""

    settled, version, foreign = True, 0, False

    def __init__(self, *records: KeyRecord) -> None:
        self.records = {record.id: record for record in records}

    @property
    def closed(self) -> bool:
        return "admin" in self.records

    def get(self, key_id: str) -> KeyRecord | None:
        return self.records.get(key_id)

    def now_ms(self) -> int:
        return 1

    def __len__(self) -> int:
        return len(self.records)


@dataclass
class Line:
    """As much of a connection as the guard looks at."""

    certificate: ClientCertificate | None


@dataclass
class Asked:
    """As much of a request as the guard looks at."""

    line: Line
    headers: dict[str, str] = field(default_factory=dict)
    peer: str = "127.0.0.1"
    identity: Identity = ANYBODY
    route: None = None
    received_ms: int = 1


def asked(
    given: str | None = None, certificate: ClientCertificate | None = None, received_ms: int = 1
) -> HttpRequest:
    headers = {"host": "127.0.0.1"}
    if given is not None:
        headers["authorization"] = f"Bearer {given}"
    return cast("HttpRequest", Asked(Line(certificate), headers, received_ms=received_ms))


RULES = CertificateRules(
    [CertificateRule("ops@*", "operator", "{1}"), CertificateRule("*", "user", "t")]
)


@pytest.mark.parametrize("data", ["auto", "closed", "open"])
def test_a_certificate_is_its_holder_s_identity_where_no_key_is_sent(data: DataAccess) -> None:
    guard = Guard(KeyAuthenticator(Source(ADMIN, USER)), RULES)
    user, operator = ClientCertificate("web", 9), ClientCertificate("ops@acme", 9)

    def admit(given: str | None, certificate: ClientCertificate | None, access: Needed) -> Identity:
        return guard.admit(asked(given, certificate), access, data)

    assert admit(None, user, "generate").tenant == "t"
    assert admit(None, operator, "look").tenant == "acme"
    # A header wins over a certificate.
    assert admit(KEY, operator, "generate").key_id == "user"
    operators: tuple[Needed, ...] = ("look", "workers")
    for access in operators:
        with pytest.raises(SmgError, match="the certificate shown has role user"):
            admit(None, user, access)
    with pytest.raises(SmgError) as nobody:
        admit(None, ClientCertificate("a/b", 9), "generate")
    assert nobody.value.code == "certificate_not_mapped"
    with pytest.raises(SmgError) as wrong:
        admit("smg-nobody-0000", operator, "look")
    assert wrong.value.status == 401


def test_rules_of_certificates_close_what_the_first_admin_key_closes() -> None:
    guard = Guard(KeyAuthenticator(Source()), RULES)
    closed: tuple[Needed, ...] = ("generate", "look", "workers")
    for access in closed:
        with pytest.raises(SmgError) as refused:
            guard.admit(asked(), access, "auto")
        assert refused.value.status == 401
    assert guard.admit(asked(), "generate", "open") == ANYBODY


def test_without_rules_a_certificate_says_nothing() -> None:
    guard = Guard(KeyAuthenticator(Source(ADMIN, USER)))
    with pytest.raises(SmgError) as refused:
        guard.admit(asked(certificate=ClientCertificate("web", 9)), "generate", "auto")
    assert refused.value.status == 401


@pytest.mark.parametrize("data", ["auto", "closed", "open"])
def test_a_certificate_that_expires_on_a_kept_connection_lets_nobody_in_any_more(
    data: DataAccess,
) -> None:
    guard = Guard(KeyAuthenticator(Source(ADMIN, USER)), RULES)
    operator = ClientCertificate("ops@acme", 9)
    everywhere: tuple[Needed, ...] = ("generate", "look")
    for access in everywhere:
        assert guard.admit(asked(None, operator, 8), access, data).tenant == "acme"
        with pytest.raises(SmgError) as expired:
            guard.admit(asked(None, operator, 9), access, data)
        assert (expired.value.status, expired.value.code) == (401, "expired_certificate")
    # A key beside it counts as before.
    assert guard.admit(asked(KEY, operator, 9), "generate", data).key_id == "user"


def test_certificates_with_long_names_are_told_apart_by_their_ends() -> None:
    guard = Guard(KeyAuthenticator(Source(ADMIN)), RULES)

    def digest(name: str) -> str:
        request = asked(certificate=ClientCertificate(name, 9))
        cast("Asked", request).identity = guard.admit(request, "generate", "auto")
        return caller_digest(request)

    start = "n" * 400
    assert len({digest(start), digest(f"{start}1"), digest(f"{start}2")}) == 3
    assert digest(start) == digest(start)
    assert caller_digest(asked()) == ""
