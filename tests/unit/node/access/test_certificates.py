"""Names in certificates, and what rules make of them."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.certificates import (
    CertificateRule,
    CertificateRules,
    ClientCertificate,
    key_id_of,
    read_certificate,
    shown,
)
from smg_node.core.errors import SmgError

WEB = CertificateRule("spiffe://prod.example/ns/*/sa/web", "user", "{1}")
OPS = CertificateRule("spiffe://prod.example/ns/ops/sa/*", "operator", "ops")


def found(*alternatives: tuple[str, str], common_name: str = "") -> dict[str, Any]:
    subject = ((("commonName", common_name),),) if common_name else ()
    return {"subject": subject, "subjectAltName": alternatives}


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (
            found(("DNS", "a"), ("URI", "https://x"), ("URI", "spiffe://d/p"), common_name="cn"),
            "spiffe://d/p",
        ),
        (found(("DNS", "a"), ("URI", "https://x"), ("email", "e@x")), "https://x"),
        (found(("DNS", "a"), ("email", "e@x")), "e@x"),
        (found(("DNS", "a"), ("DNS", "b"), common_name="cn"), "a"),
        (found(common_name="cn"), "cn"),
        (found(("IP Address", "10.0.0.1"), common_name="cn"), "cn"),
        (found(("DNS", "a")), "a"),
    ],
)
def test_the_first_kind_of_name_counts(certificate: dict[str, Any], name: str) -> None:
    assert read_certificate(certificate, 1.5) == ClientCertificate(name, 1500)


def test_a_certificate_without_a_name_or_with_an_endless_one_is_none() -> None:
    assert read_certificate(found(), 1.0) is None
    assert read_certificate({}, 1.0) is None
    assert read_certificate(found(("DNS", "a" * 513)), 1.0) is None


def test_the_first_rule_that_matches_gives_tenant_and_role() -> None:
    rules = CertificateRules([OPS, WEB])
    who = rules.identify(ClientCertificate("spiffe://prod.example/ns/chat/sa/web", 77))
    assert (who.tenant, who.role, who.expires_ms) == ("chat", "user", 77)
    assert who.subject == "certificate:spiffe://prod.example/ns/chat/sa/web"
    ops = rules.identify(ClientCertificate("spiffe://prod.example/ns/ops/sa/web", 77))
    assert (ops.tenant, ops.role) == ("ops", "operator")


@pytest.mark.parametrize(
    "name",
    [
        "spiffe://prod.example/ns/a/b/sa/web",
        "spiffe://prod.example/ns/chat/sa/web2",
        "xspiffe://prod.example/ns/chat/sa/web",
        "spiffe://prod-example/ns/chat/sa/web",
        "spiffe://prod.example/ns/chat/sa/web\n",
        "",
    ],
)
def test_what_no_rule_is_for_is_refused(name: str) -> None:
    with pytest.raises(SmgError) as refused:
        CertificateRules([WEB]).identify(ClientCertificate(name, 1))
    assert refused.value.code == "certificate_not_mapped"


@pytest.mark.parametrize("namespace", ["", "system:a", "ä", "a b", "-a", "x" * 65])
def test_what_no_tenant_can_be_called_is_refused(namespace: str) -> None:
    name = f"spiffe://prod.example/ns/{namespace}/sa/web"
    with pytest.raises(SmgError) as refused:
        CertificateRules([WEB]).identify(ClientCertificate(name, 1))
    assert refused.value.code == "tenant_not_usable"


@given(st.text(alphabet=string.printable + "äß/*.{}[]()\\", max_size=40), st.text(max_size=40))
def test_a_pattern_without_stars_matches_itself_and_nothing_else(pattern: str, other: str) -> None:
    pattern = pattern.replace("*", "")
    rules = CertificateRules([CertificateRule(pattern, "user", "t")])
    assert rules.identify(ClientCertificate(pattern, 1)).tenant == "t"
    if other != pattern:
        with pytest.raises(SmgError):
            rules.identify(ClientCertificate(other, 1))


@given(st.text(max_size=600))
def test_any_name_is_shown_short_and_printable_and_has_an_id(name: str) -> None:
    assert shown(name).isprintable()
    assert len(shown(name)) <= 128
    assert len(key_id_of(name)) == 16
    assert key_id_of(name) == key_id_of(name)
