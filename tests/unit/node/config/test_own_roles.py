"""Own roles in the configuration: read from a file and the environment, shown, and every refusal with its place."""

import json
from pathlib import Path

import pytest

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.output.effective_config import render_settings, shown_settings
from smg_node.http.http_settings import http_options
from support.tools.configuration import load, refusal

ROLES = "auth:\n  roles:\n    on-call: [workers, look]\n    reader: [history]\n"


def test_roles_of_a_file_are_what_keys_of_them_may(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(ROLES)
    settings = load(["--config", str(file)]).settings
    for one in (settings, plain_settings(settings)):
        roles = http_options(one).roles
        assert roles.of("on-call") == {"workers", "look"}
        assert roles.of("reader") == {"history"}
        assert roles.of("admin") > roles.of("operator")
    said = render_settings(settings, {})
    assert "on-call: [look, workers]" in said
    assert shown_settings(settings)["auth"]["roles"] == {  # type: ignore[index]  # a section
        "on-call": ["look", "workers"],
        "reader": ["history"],
    }


def test_roles_of_the_environment() -> None:
    given = {"SMG_AUTH__ROLES": json.dumps({"reader": ["history", "models"]})}
    assert load([], given).settings.auth.roles == {"reader": ("history", "models")}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"admin": ["look"]}, "admin is built in and cannot be defined again"),
        ({"tenant_admin": ["look"]}, "tenant_admin is built in"),
        ({"Boss": ["look"]}, "'Boss' is not the name of a role"),
        ({"x": ["lok"]}, "role x: there is no permission 'lok'; did you mean 'look'?"),
        ({"x": []}, "role x has no permissions"),
        ({"x": [7]}, "auth.roles.x"),
        ({"x": "look"}, "auth.roles.x"),
        ({f"r{number}": ["look"] for number in range(65)}, "auth.roles"),
    ],
)
def test_what_is_no_role_is_refused(said: object, words: str) -> None:
    (message,) = refusal([], {"SMG_AUTH__ROLES": json.dumps(said)})
    assert words in message


def test_a_certificate_has_a_role_that_there_is(tmp_path: Path) -> None:
    tls = "http: {tls: {certificate: a, key: b, client: ask, client_authority: c}}\n"
    rule = "  certificates: {ops: {match: '*', tenant: t, role: ROLE}}\n"
    file = tmp_path / "node.yaml"
    for role in ("on-call", "tenant_admin"):
        file.write_text(tls + ROLES + rule.replace("ROLE", role))
        settings = load(["--config", str(file)]).settings
        assert http_options(settings).certificates[0].role == role
    file.write_text(tls + ROLES + rule.replace("ROLE", "on-cal"))
    (said,) = refusal(["--config", str(file)])
    assert "certificates.ops.role: there is no role 'on-cal'; did you mean 'on-call'?" in said
