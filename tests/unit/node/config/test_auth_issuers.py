"""Issuers in the settings: what is taken, what is refused in words, and what it becomes."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from smg_node.access.roles import BUILT_IN_ROLES
from smg_node.access.tokens.issuer import Introspection, Issuer
from smg_node.access.tokens.issuer_settings import issuers_of
from smg_node.config.frozen_settings import plain_settings
from smg_node.config.output.effective_config import render_settings, shown_settings
from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.settings import Settings
from support.tools.configuration import load

GOOD: dict[str, Any] = {
    "issuer": "https://sso.example/realms/prod",
    "audiences": ["smg"],
    "roles": "/realm_access/roles",
    "role_map": {"gateway-admin": "admin", "*": "user"},
    "tenant": "/azp",
}
FILE = """
auth:
  issuers:
    corp:
      issuer: https://sso.example/realms/prod
      audiences: [smg, other]
      roles: /realm_access/roles
      role_map: {gateway-admin: admin, "system:serviceaccount:prod:*": operator, "*": user, 7: user}
      tenant: /azp
      tenant_prefix: corp.
      algorithms: [ES256]
      token_types: [at+jwt]
      leeway_s: 5
      token_file: ~/token
      authority: /etc/ca.pem
      keys_url: http://127.0.0.1:9/keys
      introspection: {url: "https://sso.example/introspect", client_id: smg, client_secret_file: /etc/secret}
"""


def settings(**issuers: Any) -> Settings:
    return Settings(data_dir=Path("/data"), auth={"issuers": issuers})  # type: ignore[arg-type]  # as a file gives it


def refused(**changed: Any) -> str:
    told = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    with pytest.raises(ValidationError) as caught:
        settings(corp=told)
    return str(caught.value.errors()[0]["msg"])


def test_a_file_becomes_values(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(FILE)
    (found,) = issuers_of(
        plain_settings(load(["--config", str(file)]).settings).auth, BUILT_IN_ROLES
    )
    assert found == Issuer(
        alias="corp",
        issuer="https://sso.example/realms/prod",
        audiences=("smg", "other"),
        roles="/realm_access/roles",
        role_map=(
            ("gateway-admin", "admin"),
            ("system:serviceaccount:prod:*", "operator"),
            ("*", "user"),
            ("7", "user"),
        ),
        tenant="/azp",
        tenant_prefix="corp.",
        algorithms=("ES256",),
        token_types=("at+jwt",),
        leeway_s=5.0,
        keys_url="http://127.0.0.1:9/keys",
        authority="/etc/ca.pem",
        token_file=str(Path.home() / "token"),
        introspection=Introspection("https://sso.example/introspect", "smg", "/etc/secret"),
    )


def test_settings_without_issuers_have_none_and_defaults_are_the_values_own() -> None:
    assert issuers_of(Settings().auth, BUILT_IN_ROLES) == ()
    (found,) = issuers_of(settings(corp=GOOD).auth, BUILT_IN_ROLES)
    assert found == Issuer(
        "corp",
        GOOD["issuer"],
        ("smg",),
        GOOD["roles"],
        (("gateway-admin", "admin"), ("*", "user")),
        "/azp",
    )


def test_what_is_printed_can_be_given_back(tmp_path: Path) -> None:
    first, second = tmp_path / "one.yaml", tmp_path / "two.yaml"
    first.write_text(FILE)
    told = load(["--config", str(first)]).settings
    second.write_text(render_settings(told, {}))
    again = load(["--config", str(second)]).settings
    assert again.auth == told.auth
    shown = shown_settings(plain_settings(told))
    assert "'gateway-admin': 'admin'" in str(shown)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"issuer": ""}, "printable"),
        ({"issuer": "http://sso.example"}, "must begin with https://"),
        ({"issuer": "sso.example"}, "must begin with https://"),
        ({"issuer": "ftp://sso.example"}, "must begin with https://"),
        ({"issuer": "https://me:hidden@sso.example"}, "user name"),
        ({"issuer": "https://sso.example/ a"}, "blanks"),
        ({"issuer": "https://[::1"}, "is not a URL"),
        ({"issuer": "https://a\n"}, "printable"),
        ({"keys_url": "http://10.0.0.1/keys"}, "must begin with https://"),
        ({"audiences": None}, "audiences must name"),
        ({"audiences": ["*"]}, "no wildcard"),
        ({"audiences": [""]}, "1 to 512"),
        ({"role_map": None}, "role_map must say"),
        ({"roles": None}, "does not say where"),
        ({"roles": "realm_access.roles"}, "is not a JSON Pointer"),
        ({"tenant": "azp"}, "is not a JSON Pointer"),
        ({"tenant": None}, "users need a tenant"),
        ({"tenant_fixed": "all"}, "exclude each other"),
        ({"tenant": None, "tenant_fixed": "a b"}, "nothing that tenants"),
        ({"tenant_prefix": "a/"}, "nothing that tenants"),
        (
            {"tenant": None, "tenant_fixed": "a", "tenant_prefix": "b."},
            "tenant_prefix needs tenant",
        ),
        ({"algorithms": ["none"]}, "'none' is none of RS256"),
        ({"algorithms": ["HS256"]}, "'HS256' is none of RS256"),
        ({"algorithms": ["rs256"]}, "'rs256' is none of RS256"),
        ({"algorithms": []}, "at least one of"),
        ({"token_types": ["id"]}, "is none of at+jwt, JWT, none"),
        ({"introspection": {"url": "https://a.example"}}, "together"),
        ({"introspection": {"client_id": "a"}}, "together"),
        ({"role_map": {"a": "root"}}, "there is no role 'root'"),
    ],
)
def test_what_could_not_work_is_refused_in_words(changed: dict[str, Any], words: str) -> None:
    said = refused(**changed)
    assert words in said
    assert "hidden" not in said


def test_two_names_of_one_issuer_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"issuers\.two are the same issuer"):
        settings(one=GOOD, two=GOOD)
    assert len(settings(one=GOOD, two={**GOOD, "issuer": GOOD["issuer"] + "/"}).auth.issuers) == 2
    with pytest.raises(ValidationError, match="is not such a name"):
        settings(**{"Corp ": GOOD})


def test_one_issuer_is_asked_about_tokens_that_do_not_say_whose_they_are() -> None:
    asked = {"url": "https://a.example", "client_id": "a", "client_secret_file": "/etc/secret"}
    one, two = {**GOOD, "introspection": asked}, {**GOOD, "issuer": "https://two.example"}
    assert len(settings(one=one, two=two).auth.issuers) == 2
    with pytest.raises(ValidationError, match=r"issuers\.one and issuers\.two have an introspect"):
        settings(one=one, two={**two, "introspection": asked})


def test_files_that_are_lent_are_spelled_as_issuers_spell_them() -> None:
    told = ("~/token", "./a//b", "/etc/ca.pem")
    auth: Any = {"issuer_files": told}
    lent = Settings(data_dir=Path("/data"), auth=auth).auth.issuer_files
    files = [
        settings(corp={**GOOD, "token_file": file}).auth.issuers["corp"].token_file for file in told
    ]
    assert list(lent) == [str(file) for file in files]


def test_an_issuer_that_is_no_url_says_where_its_keys_are() -> None:
    told = {**GOOD, "issuer": "kubernetes/serviceaccount", "keys_url": "https://10.0.0.1/keys"}
    assert settings(corp=told).auth.issuers["corp"].issuer == "kubernetes/serviceaccount"


def test_operators_need_no_tenant_and_a_star_no_pointer() -> None:
    settings(corp={**GOOD, "tenant": "", "roles": "", "role_map": {"*": "operator"}})


@pytest.mark.parametrize(
    ("mapped", "words"),
    [
        ("admin", "it must be a JSON object"),
        ("[admin]", "it must be a section of names with a text each"),
        ("{a: [admin]}", "its entries must be text"),
        ("{a: 7}", "its entries must be text"),
        ("{a: admin, a: user}", "'a' is given twice"),
        ("{? [a] : admin}", "a key must be one word"),
        ("{a: !!int x}", "is not what YAML takes it for"),
    ],
)
def test_a_map_of_roles_is_names_with_a_text_each(tmp_path: Path, mapped: str, words: str) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(f"auth: {{issuers: {{corp: {{role_map: {mapped}}}}}}}\n")
    with pytest.raises(ConfigurationError) as caught:
        load(["--config", str(file)])
    problem = next(one for one in caught.value.problems if "role_map" in one.subject)
    assert words in problem.message


def test_a_map_of_roles_is_json_in_flags_and_environment() -> None:
    flags = [
        *("--auth.issuers.a.issuer", "https://a.example", "--auth.issuers.a.audiences", "smg"),
        *("--auth.issuers.a.role-map", '{"*": "operator"}'),
    ]
    assert load(flags).settings.auth.issuers["a"].role_map == {"*": "operator"}
    with pytest.raises(ConfigurationError, match="it must be a JSON object"):
        load([*flags[:-1], "admin"])
