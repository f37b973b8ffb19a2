"""What a node says when it is up: where it listens, and what stands open that should not."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.access.certificates import CertificateRule
from smg_node.config.address import Address
from smg_node.config.frozen_settings import plain_settings
from smg_node.config.settings import Settings
from smg_node.http.announcement import announce, is_open, lacks_administrator, readable_keys
from support.http.http_node import node
from support.http.raw_http import ask

PUBLIC, HERE = Address("0.0.0.0", 30000), Address("127.0.0.1", 30000)
RULES = (CertificateRule("*", "user", "t"),)


@pytest.mark.parametrize(
    ("options", "address", "opened"),
    [
        ({}, PUBLIC, True),
        ({}, Address("::", 1), True),
        ({}, Address("10.0.0.7", 1), True),
        ({}, HERE, False),
        ({}, Address("::1", 1), False),
        ({}, Address("localhost", 1), False),
        ({"data_access": "closed"}, PUBLIC, False),
        ({"data_access": "open"}, PUBLIC, True),
        ({"certificates": RULES}, PUBLIC, False),
        ({"certificates": RULES, "data_access": "open"}, PUBLIC, True),
    ],
)
async def test_a_node_is_open_where_others_need_no_credential(
    options: dict[str, Any], address: Address, opened: bool
) -> None:
    async with node(**options) as served:
        assert is_open(served.parts, address) is opened


async def test_an_admin_key_closes_it_unless_it_is_to_stay_open() -> None:
    for access, opened in (("auto", False), ("open", True)):
        async with node(data_access=access) as served:
            made = await ask(
                served.port, "POST", "/v1/cluster/keys", {"role": "admin", "tenant": "o"}
            )
            assert made.status == 201
            assert is_open(served.parts, PUBLIC) is opened


async def test_a_closed_node_that_lets_no_administrator_in_is_told_from_others() -> None:
    for options, lacking in (
        ({}, False),
        ({"certificates": RULES}, True),
        ({"certificates": (*RULES, CertificateRule("ops", "admin", "t"))}, False),
        ({"certificates": RULES, "admin_listen": "unix:/tmp/none.sock"}, False),
    ):
        async with node() as served:
            served.parts.options = replace(served.parts.options, **options)
            assert lacks_administrator(served.parts) is lacking
    async with node() as served:
        await ask(served.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        served.parts.options = replace(served.parts.options, certificates=RULES)
        assert not lacks_administrator(served.parts)


async def test_it_is_said_in_a_line_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name in ("open.key", "private.key"):
        (tmp_path / name).write_text("secret")
    (tmp_path / "open.key").chmod(0o644)
    (tmp_path / "private.key").chmod(0o600)
    files = {"certificate": str(tmp_path / "a"), "key": str(tmp_path / "open.key")}
    said: dict[str, Any] = {
        "auth": {"admin_key_file": str(tmp_path / "private.key")},
        "engine": {"tls": files},
    }
    settings = plain_settings(Settings(**said))
    assert readable_keys(settings) == [tmp_path / "open.key"]
    async with node(admin_listen="127.0.0.1:0", admin_apart=True) as served:
        announce(settings, served.server, PUBLIC)
        where = served.server.operators_address
    lines = [record.getMessage() for record in caplog.records if record.name == "smg_node"]
    assert [line.split(" (", 1)[0] for line in lines] == [
        f"everybody on this machine may read the secret in {tmp_path / 'open.key'}",
        "everybody who reaches 0.0.0.0:30000 is answered without a key: no admin key exists",
        *[line for line in lines if line.startswith("metrics on")],
        f"operators are answered on http://{where}",
        "listening on http://0.0.0.0:30000",
    ]
    assert "secret" not in "".join(lines).replace("the secret in", "")


def test_files_that_are_not_there_are_for_others_to_complain_of(tmp_path: Path) -> None:
    said: dict[str, Any] = {"auth": {"admin_key_file": str(tmp_path / "none")}}
    assert readable_keys(Settings(**said)) == []
