"""The first issuer on real nodes: it locks no operator out by mistake, and opens no other node when it goes."""

from pathlib import Path
from typing import Final

import pytest

from support.processes.mesh_nodes import flags_of as flags
from support.processes.mesh_nodes import make_key, mesh_node, smg_admin, until
from support.processes.node import running_node

pytestmark = pytest.mark.integration

USERS: Final = """
issuer: https://sso.example/realms/prod
audiences: [smg]
role_map: {"*": user}
tenant: /azp
"""
ADMINS: Final = USERS.replace("role_map: ", "roles: /groups\nrole_map: ").replace(
    '{"*"', '{ops: admin, "*"'
)
CLOSED: Final = """
auth:
  issuers:
    own:
      issuer: https://own.example
      audiences: [smg]
      role_map: {"*": user}
      tenant: /azp
"""


def test_the_first_issuer_that_lets_no_administrator_in_is_refused(tmp_path: Path) -> None:
    users, admins = tmp_path / "users.yaml", tmp_path / "admins.yaml"
    users.write_text(USERS)
    admins.write_text(ADMINS)
    with running_node(tmp_path / "node") as node:
        define = ("--url", node.url, "access", "define", "corp", "--file")
        refused = smg_admin(*define, users)
        assert refused.code == 1
        assert "nobody could administer this node any more" in refused.err
        # The operator of this machine is still let in.
        listed = smg_admin("--url", node.url, "access", "issuers")
        assert listed.out == "No issuer is configured (auth.issuers).\n"
        made = smg_admin(*define, admins)
        assert made.code == 0, made.err
        assert "from now on every request needs a token or a key" in made.err
        shut = smg_admin("--url", node.url, "access", "issuers")
        assert shut.code == 1
        assert "this needs a key" in shut.err


def test_a_node_whose_settings_let_no_administrator_in_says_so_at_its_start(
    tmp_path: Path,
) -> None:
    config = tmp_path / "node.yaml"
    config.write_text(CLOSED)
    with running_node(tmp_path / "shut", flags=("--config", str(config))) as node:
        until(lambda: "nobody may administer this node" in node.process.said(), "said so")
    config.write_text(
        CLOSED.replace('{"*": user}', '{"*": user, boss: admin}\n      roles: /groups')
    )
    with running_node(tmp_path / "fine", flags=("--config", str(config))) as node:
        assert "nobody may administer" not in node.process.said()


def test_an_issuer_of_one_nodes_settings_does_not_keep_the_others_closed(tmp_path: Path) -> None:
    config, admins = tmp_path / "a.yaml", tmp_path / "admins.yaml"
    config.write_text("auth:\n  admin_key_file: " + str(tmp_path / "admin.key"))
    admins.write_text(ADMINS)
    generated = smg_admin("keys", "generate", "--out", tmp_path / "admin.key")
    assert generated.code == 0, generated.err
    key = make_key(tmp_path)
    with mesh_node(tmp_path / "a", [*flags("a", key=key), "--config", str(config)]) as a:
        admin = ("--url", a.node.url, "--key-file", tmp_path / "admin.key")
        with mesh_node(tmp_path / "b", flags("b", key=key, join=[a.mesh])) as b:
            until(
                lambda: '"b"' in smg_admin(*admin, "--json", "cluster", "members").out, "b is seen"
            )
            made = smg_admin(*admin, "access", "define", "corp", "--file", admins)
            assert made.code == 0, made.err
            until(
                lambda: smg_admin("--url", b.node.url, "access", "issuers").code == 1, "b is closed"
            )
            # This node has a key in its settings; b has nothing else.
            kept = smg_admin(*admin, "access", "remove", "corp")
            assert kept.code == 1
            assert "answers loopback only, on b;" in kept.err
            assert smg_admin(*admin, "access", "remove", "corp", "--force").code == 0
            until(
                lambda: smg_admin("--url", b.node.url, "access", "issuers").code == 0, "b is open"
            )
