"""Claims against the rules of an issuer: who it is, or why nobody."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.identity import AccessError, Identity
from smg_node.access.tokens.claims import IssuerRules, issued_ms, key_id_of, subject_of
from smg_node.access.tokens.token_head import TokenHead
from smg_node.core.errors import ErrorKind
from support.access.signed_tokens import ISSUER, NOW_MS, NOW_S, claims, issuer


def head(told: dict[str, Any], algorithm: str = "ES256", kind: str | None = "JWT") -> TokenHead:
    return TokenHead(algorithm, "one", kind, ISSUER, told, b"", b"")


def identified(told: dict[str, Any], **changed: Any) -> Identity:
    rules = IssuerRules(issuer(**changed))
    return rules.identify(told, rules.check(head(told), NOW_MS))


def refused(told: dict[str, Any], **changed: Any) -> AccessError:
    with pytest.raises(AccessError) as caught:
        identified(told, **changed)
    return caught.value


def test_a_good_token_is_somebody() -> None:
    assert identified(claims()) == Identity(
        key_id_of(ISSUER, "alice"),
        "acme",
        "operator",
        (NOW_S + 600 + 30) * 1000,
        "token:corp/alice",
    )


# ── Time ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"exp": None}, "invalid_token"),
        ({"exp": NOW_S - 29}, ""),
        ({"exp": NOW_S - 30}, "expired_token"),
        ({"exp": NOW_S - 29.5}, ""),
        ({"exp": 0}, "expired_token"),
        ({"exp": 10**30}, ""),
        ({"exp": 10**400}, "invalid_token"),
        ({"exp": 1e308}, ""),
        ({"exp": float("inf")}, "invalid_token"),
        ({"exp": float("nan")}, "invalid_token"),
        ({"exp": -1}, "invalid_token"),
        ({"exp": "1700000600"}, "invalid_token"),
        ({"exp": True}, "invalid_token"),
        ({"exp": [NOW_S + 600]}, "invalid_token"),
        ({"nbf": NOW_S + 30}, ""),
        ({"nbf": NOW_S + 31}, "token_not_yet_valid"),
        ({"nbf": "soon"}, "invalid_token"),
        ({"iat": None}, ""),
        ({"iat": NOW_S + 30}, ""),
        ({"iat": NOW_S + 31}, "token_not_yet_valid"),
        ({"iat": {}}, "invalid_token"),
    ],
)
def test_times_are_numbers_and_fit_this_clock(changed: dict[str, Any], code: str) -> None:
    told = claims(**changed)
    if code:
        assert (refused(told).code, refused(told).status) == (code, 401)
    else:
        assert identified(told).expires_ms > NOW_MS


def test_leeway_is_the_issuers() -> None:
    late = claims(exp=NOW_S - 100)
    assert refused(late).code == "expired_token"
    assert identified(late, leeway_s=101.0).expires_ms == NOW_MS + 1000
    assert refused(claims(exp=NOW_S), leeway_s=0.0).code == "expired_token"


def test_a_null_is_no_time() -> None:
    for name in ("exp", "nbf", "iat"):
        assert refused({**claims(), name: None}).code == "invalid_token"


def test_when_a_token_was_issued_is_told_or_zero() -> None:
    assert issued_ms(claims()) == (NOW_S - 10) * 1000
    assert issued_ms(claims(iat=None)) == 0
    assert issued_ms(claims(iat=1e308)) > NOW_MS


# ── Audience, type, algorithm ────────────────────────────────────────────────


@pytest.mark.parametrize("came", ["smg", ["smg"], ["account", "smg"], ["a"] * 2000 + ["smg"]])
def test_one_of_the_audiences_is_enough(came: Any) -> None:
    assert identified(claims(aud=came)).tenant == "acme"


@pytest.mark.parametrize(
    ("came", "shown"),
    [
        ("account", "'account'"),
        (["account", "other"], "'account', 'other'"),
        (None, "nobody"),
        ([], "nobody"),
        ("", "''"),
        ("SMG", "'SMG'"),
        ("smg ", "'smg '"),
        (["*"], "'*'"),
        (7, "nobody"),
        ({"smg": 1}, "nobody"),
        ([["smg"]], "list"),
        ("a\nb\x1b", r"'a\nb\x1b'"),
    ],
)
def test_the_error_says_which_audience_came(came: Any, shown: str) -> None:
    error = refused(claims(aud=came))
    assert (error.code, error.status) == ("wrong_audience", 401)
    assert error.message.endswith(f"its aud is {shown}")
    assert error.challenge == 'error="invalid_token", error_description="wrong audience"'


def test_what_errors_show_is_short() -> None:
    assert len(refused(claims(aud=["x" * 3000] * 50)).message) < 1200
    assert len(refused(claims(azp="x" * 3000)).message) < 300


@pytest.mark.parametrize(
    ("types", "came", "good"),
    [
        (("at+jwt", "JWT", "none"), None, True),
        (("at+jwt", "JWT", "none"), "none", False),
        (("at+jwt", "JWT", "none"), "logout+jwt", False),
        (("at+jwt",), "at+jwt", True),
        (("at+jwt",), "JWT", False),
        (("at+jwt",), None, False),
        (("none",), None, True),
        (("none",), "none", False),
    ],
)
def test_types_can_be_narrowed(types: tuple[str, ...], came: str | None, *, good: bool) -> None:
    rules = IssuerRules(issuer(token_types=types))
    if good:
        assert rules.check(head(claims(), kind=came), NOW_MS)
        return
    with pytest.raises(AccessError) as caught:
        rules.check(head(claims(), kind=came), NOW_MS)
    assert caught.value.code == "wrong_token_type"


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "HS256", "RS256", "ES256 ", "es256", "ES256K"]
)
def test_an_algorithm_that_is_not_listed_is_not_taken(algorithm: str) -> None:
    with pytest.raises(AccessError) as caught:
        IssuerRules(issuer(algorithms=("ES256",))).check(head(claims(), algorithm), NOW_MS)
    assert caught.value.code == "algorithm_not_allowed"


# ── Roles ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("came", "role"),
    [
        (["gateway-admin"], "admin"),
        (["gateway-ops", "gateway-admin", "gateway-ops"], "admin"),
        (["gateway-ops"], "operator"),
        ("gateway-ops offline", "operator"),
        (" \tgateway-admin\n", "admin"),
        ({"gateway-admin": {"id": 7}}, "admin"),
        ([["gateway-admin"], 7, None], "user"),
        ({}, "user"),
        ([], "user"),
        (None, "user"),
        (7, "user"),
        (True, "user"),
        ("gateway-administrator", "user"),
        ("GATEWAY-ADMIN", "user"),
    ],
)
def test_the_best_role_counts_in_each_form(came: Any, role: str) -> None:
    assert identified(claims(realm_access={"roles": came})).role == role


def test_without_a_star_an_unknown_role_is_nobody() -> None:
    mapped = (("gateway-admin", "admin"),)
    error = refused(claims(), role_map=mapped)
    assert (error.code, error.kind, error.status) == ("no_role", ErrorKind.FORBIDDEN, 403)
    assert error.message == (
        "the token's /realm_access/roles has 'offline_access', 'gateway-ops': nothing that"
        " auth.issuers.corp.role_map knows"
    )
    assert error.challenge == 'error="insufficient_scope"'
    assert "is not there" in refused(claims(realm_access=None), role_map=mapped).message
    assert "names no role" in refused(claims(realm_access={"roles": 7}), role_map=mapped).message


def test_groups_that_were_left_out_are_said_to_be() -> None:
    told = claims(
        _claim_names={"groups": "src1"}, _claim_sources={"src1": {"endpoint": "https://x"}}
    )
    error = refused(told, roles="/groups", role_map=(("ops", "operator"),))
    assert error.code == "no_role"
    assert "link in its place" in error.message


def test_names_in_the_map_may_have_stars() -> None:
    mapped = (("system:serviceaccount:prod:*", "user"), ("*:root", "admin"))
    told = {"roles": "/sub", "role_map": mapped}
    assert identified(claims(sub="system:serviceaccount:prod:web"), **told).role == "user"
    assert identified(claims(sub="system:serviceaccount:prod:root"), **told).role == "admin"
    assert refused(claims(sub="system:serviceaccount:dev:web"), **told).code == "no_role"


# ── Tenants ──────────────────────────────────────────────────────────────────


def test_a_tenant_is_found_fixed_or_prefixed() -> None:
    assert identified(claims(), tenant_prefix="corp.").tenant == "corp.acme"
    assert identified(claims(), tenant="", tenant_fixed="all").tenant == "all"
    assert identified(claims(tid=42), tenant="/tid").tenant == "42"
    kubernetes = claims(**{"kubernetes.io": {"namespace": "prod"}})
    assert identified(kubernetes, tenant="/kubernetes.io/namespace").tenant == "prod"


@pytest.mark.parametrize(
    "came",
    ["system:serviceaccount:ns:name", "auth0|abc", "", "-a", "x" * 65, "a b", "ä", "a/b", "a\n"],
)
def test_a_tenant_that_cannot_be_called_so_is_refused(came: str) -> None:
    error = refused(claims(azp=came))
    assert (error.code, error.status) == ("tenant_not_usable", 403)


@pytest.mark.parametrize("came", [True, 1.5, ["acme"], {"acme": 1}])
def test_a_tenant_is_a_text(came: Any) -> None:
    assert "is no text" in refused(claims(azp=came)).message


def test_operators_need_no_tenant() -> None:
    assert identified(claims(azp=None)).tenant == ""
    users = claims(azp=None, realm_access=None)
    assert refused(users).code == "tenant_not_usable"
    assert refused({**users, "azp": None}).code == "tenant_not_usable"
    # What is there and cannot be used is a mistake for everybody.
    assert refused(claims(azp="a b")).code == "tenant_not_usable"


# ── Subjects ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("came", [None, "", 7, ["alice"], "x" * 1025])
def test_a_token_is_about_somebody(came: Any) -> None:
    assert refused(claims(sub=came)).code == "invalid_token"


def test_the_audit_shows_a_short_and_printable_name() -> None:
    subject = identified(claims(sub="a\n\x1b[2J" + "x" * 1000)).subject
    assert subject.startswith("token:corp/a??[2Jxxx")
    assert len(subject) == 128


def test_ids_differ_by_issuer_and_subject() -> None:
    ids = {key_id_of(one, two) for one in ("https://a", "https://a/") for two in ("b", "/b", "B")}
    assert len(ids) == 6
    for key_id in ids:
        assert key_id[0] == "t"
        assert len(key_id) == 16
        assert key_id.isalnum()
    assert key_id_of("https://a", "\ud800")


# ── Anything ─────────────────────────────────────────────────────────────────

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ("iss", "aud", "sub", "azp", "iat", "nbf", "exp", "realm_access", "_claim_names")


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.booleans())
def test_any_claims_are_somebody_or_a_named_reason(changed: dict[str, Any], star: bool) -> None:
    told = {**claims(), **changed}
    mapped = (("gateway-*", "operator"), *((("*", "user"),) if star else ()))
    try:
        who = identified(told, role_map=mapped)
    except AccessError as error:
        assert_named(error)
        return
    assert who.subject.isprintable()
    assert who.subject == f"token:corp/{subject_of(told)}"[:128] or "?" in who.subject
    assert who.expires_ms > NOW_MS
    assert who.role in ("user", "operator")


def assert_named(error: AccessError) -> None:
    assert error.code in {
        "invalid_token",
        "expired_token",
        "token_not_yet_valid",
        "wrong_audience",
        "no_role",
        "tenant_not_usable",
    }
    assert error.message.isprintable()
    assert error.challenge.isascii()
