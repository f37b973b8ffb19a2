"""The keys a node goes by: those of the cluster and those of its file."""

import logging
import os
from itertools import count
from pathlib import Path

import pytest

from smg_node.access.api_key import digest_of, read_key_text
from smg_node.access.identity import KeyAuthenticator
from smg_node.access.restrictions import Restrictions
from smg_node.cluster.admin_key_file import FileKeys, read_admin_keys
from smg_node.cluster.api_keys import ClusterKeys, KeyContext
from smg_node.config.schema.problems import ConfigurationError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.keys import KeyRequest
from support.state.fake_namespace import EPOCH_MS
from support.state.fake_shared_state import SharedWorld

SECRET = "f" * 43
ADMIN = KeyRequest("", "admin")
USER = KeyRequest("acme", "user", "checkout")


class Nodes:
    """The keys of two nodes that share them, `a` with a file if there is one."""

    def __init__(self, file: FileKeys | None = None) -> None:
        self.world = SharedWorld("a", "b")
        self.now_ms = EPOCH_MS
        self.held = True
        numbers = count(1)

        def chance(characters: int, alphabet: str) -> str:
            return f"{next(numbers):0{characters}}"

        ground = KeyContext(lambda: self.now_ms, chance, held=lambda: self.held)
        self.a = ClusterKeys(self.world.nodes["a"].keys, ground, file)
        self.b = ClusterKeys(self.world.nodes["b"].keys, ground)


def error_of(keys: ClusterKeys, key_id: str, *, force: bool = False) -> SmgError:
    with pytest.raises(SmgError) as caught:
        keys.revoke(key_id, force=force)
    return caught.value


def test_a_key_made_on_one_node_opens_the_other() -> None:
    nodes = Nodes()
    made = nodes.a.create(KeyRequest("acme", "user", "checkout", expires_in_s=60))
    said = read_key_text(made.text)
    assert said is not None
    assert (said[0], made.closes) == (made.view.id, False)
    view = made.view
    assert (view.tenant, view.role, view.name, view.state) == ("acme", "user", "checkout", "active")
    assert (view.created_ms, view.expires_ms) == (EPOCH_MS, EPOCH_MS + 60_000)
    assert nodes.b.keys(revoked=False) == [view]
    who = KeyAuthenticator(nodes.b).identify(made.text)
    assert (who.key_id, who.tenant, who.role) == (made.view.id, "acme", "user")
    nodes.now_ms += 60_000
    (expired,) = nodes.b.keys(revoked=False)
    assert expired.state == "expired"
    with pytest.raises(SmgError):
        KeyAuthenticator(nodes.b).identify(made.text)


def test_neither_key_nor_digest_is_in_what_is_shown() -> None:
    nodes = Nodes()
    made = nodes.a.create(USER)
    said = read_key_text(made.text)
    assert said is not None
    shown = f"{made!r} {made.view!r} {nodes.a.keys(revoked=True)!r}"
    assert said[1] not in shown
    assert digest_of(said[1]).hex() not in shown


def test_the_first_admin_key_closes_and_the_last_one_opens_only_by_force() -> None:
    nodes = Nodes()
    first = nodes.a.create(ADMIN)
    assert (first.closes, nodes.b.closed) == (True, True)
    second = nodes.b.create(ADMIN)
    assert not second.closes
    assert not nodes.b.revoke(first.view.id, force=False).opens
    error = error_of(nodes.a, second.view.id)
    assert (error.kind, error.code) == (ErrorKind.CONFLICT, "last_admin_key")
    done = nodes.a.revoke(second.view.id, force=True)
    assert (done.before.state, done.now.state, done.opens) == ("active", "revoked", True)
    assert not nodes.a.closed
    assert not nodes.b.closed


def test_an_expired_admin_key_is_nobody_to_rely_on() -> None:
    nodes = Nodes()
    nodes.a.create(KeyRequest("", "admin", expires_in_s=1))
    other = nodes.a.create(ADMIN)
    nodes.now_ms += 1_000
    assert error_of(nodes.a, other.view.id).code == "last_admin_key"


def test_an_admin_key_for_other_routes_is_nobody_to_rely_on() -> None:
    nodes = Nodes()
    first = nodes.a.create(ADMIN)
    nodes.a.create(KeyRequest("", "admin", restrictions=Restrictions(routes=("chat",))))
    assert error_of(nodes.a, first.view.id).code == "last_admin_key"
    nodes.a.create(KeyRequest("", "admin", restrictions=Restrictions(routes=("chat", "admin"))))
    assert nodes.a.revoke(first.view.id, force=False).now.state == "revoked"


def test_an_operators_key_is_not_the_last_admin_key() -> None:
    nodes = Nodes()
    nodes.a.create(ADMIN)
    operator = nodes.a.create(KeyRequest("acme", "operator"))
    assert nodes.a.revoke(operator.view.id, force=False).now.state == "revoked"


def test_revoking_twice_is_no_error_and_revoking_nothing_is_one() -> None:
    nodes = Nodes()
    nodes.a.create(ADMIN)
    made = nodes.a.create(USER)
    nodes.a.revoke(made.view.id, force=False)
    assert nodes.b.revoke(made.view.id, force=False).now.state == "revoked"
    assert error_of(nodes.a, "nobody").code == "key_not_found"
    assert [view.state for view in nodes.a.keys(revoked=True)] == ["active", "revoked"]
    assert [view.role for view in nodes.a.keys(revoked=False)] == ["admin"]


def test_a_key_that_cannot_be_kept_is_not_given_out() -> None:
    nodes = Nodes()
    nodes.world.keys["a"].full = lambda _: True
    with pytest.raises(SmgError) as caught:
        nodes.a.create(USER)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "state_full")


# ── A file ───────────────────────────────────────────────────────────────────


def test_a_key_of_a_file_is_good_on_its_node_alone_and_closes_it() -> None:
    nodes = Nodes(FileKeys({"bootstrap": SECRET}))
    assert (nodes.a.closed, nodes.b.closed) == (True, False)
    who = KeyAuthenticator(nodes.a).identify(f"smg-bootstrap-{SECRET}")
    assert (who.key_id, who.role) == ("bootstrap", "admin")
    (view,) = nodes.a.keys(revoked=False)
    assert (view.source, view.state, view.created_ms) == ("file", "active", None)
    assert error_of(nodes.a, "bootstrap", force=True).code == "key_of_file"
    assert len(nodes.b) == 0


def test_with_a_key_of_a_file_no_key_of_the_cluster_is_the_last() -> None:
    nodes = Nodes(FileKeys({"bootstrap": SECRET}))
    made = nodes.a.create(ADMIN)
    assert not made.closes
    assert not nodes.a.revoke(made.view.id, force=False).opens
    assert nodes.b.closed


def test_a_file_has_a_key_a_line(tmp_path: Path) -> None:
    file = tmp_path / "admin.keys"
    file.write_text(f"\ufeff# ours\n\n  smg-one-{SECRET}  # first\nsmg-two-{SECRET}\n")
    file.chmod(0o600)
    found = read_admin_keys(file)
    assert found.secrets == {"one": SECRET, "two": SECRET}
    assert found.warnings == ()
    assert SECRET not in repr(found)


def test_a_file_that_others_may_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "admin.keys"
    file.write_text(f"smg-one-{SECRET}\n")
    file.chmod(0o644)
    nodes = Nodes(read_admin_keys(file))
    nodes.a.say()
    assert f"{file}: others on this machine may use it (mode 0644); chmod 600" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file or directory"),
        (b"", "has 0 keys"),
        (b"# none\n", "has 0 keys"),
        (b"smg-one-short\n", "line 1: not a key"),
        (b"\nhunter2hunter2hunter2hunter2hunter2hunter2\n", "line 2: not a key"),
        (f"smg-one-{SECRET}\nsmg-one-{SECRET}x\n".encode(), "line 2: the id one again"),
        (b"\xff\xfe\x00", "is no text"),
        (b"#" * 65_537, "larger than"),
        (b"".join(b"smg-k%d-%s\n" % (n, SECRET.encode()) for n in range(9)), "has 9 keys"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_start_and_shows_no_secret(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "admin.keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_admin_keys(file)
    (line,) = caught.value.lines()
    assert line.startswith("auth.admin_key_file: ")
    assert str(file) in line
    assert words in line
    assert "hunter2" not in line
    assert SECRET not in line


def test_a_pipe_may_be_a_file(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"smg-one-{SECRET}\n".encode())
    os.close(writer)
    try:
        assert read_admin_keys(Path(f"/dev/fd/{reader}")).warnings == ()
    finally:
        os.close(reader)


def test_a_node_started_with_a_file_goes_by_it(tmp_path: Path) -> None:
    file = tmp_path / "admin.keys"
    file.write_text(f"smg-one-{SECRET}\n")
    keys = SharedWorld("a").desks("a", "--auth.admin-key-file", str(file)).keys
    assert keys.closed
    assert keys.get("one") is not None


# ── What the log says ────────────────────────────────────────────────────────


def test_the_log_says_whether_keys_are_needed_at_the_start_and_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    nodes = Nodes()
    nodes.a.create(USER)
    assert not caplog.records
    nodes.b.say()
    nodes.b.say()
    nodes.a.create(USER)
    admin = nodes.a.create(ADMIN)
    nodes.a.create(ADMIN)
    for view in nodes.a.keys(revoked=False):
        nodes.a.revoke(view.id, force=True)
    assert [(one.levelname, one.message[:26]) for one in caplog.records] == [
        ("WARNING", "no admin key exists: data "),
        ("INFO", "an admin key exists: reque"),
        ("WARNING", "no admin key exists: data "),
    ]
    assert admin.text not in caplog.text


def test_keys_of_a_tenant_count_wherever_they_were_made() -> None:
    nodes = Nodes()
    wish = KeyRequest("acme", "user", tenant_keys_max=2)
    first = nodes.a.create(wish)
    nodes.b.create(wish)
    for keys in (nodes.a, nodes.b):
        with pytest.raises(SmgError, match="tenant acme has 2 keys") as full:
            keys.create(wish)
        assert (full.value.status, full.value.code) == (409, "tenant_keys_full")
    nodes.a.create(KeyRequest("other", "user", tenant_keys_max=2))
    nodes.b.revoke(first.view.id, force=False)
    nodes.a.create(wish)


def test_a_key_ends_with_its_maker_and_not_after_it() -> None:
    nodes = Nodes()
    until_ms = EPOCH_MS + 60_000
    assert nodes.a.create(KeyRequest("acme", "user", until_ms=until_ms)).view.expires_ms == until_ms
    exact = nodes.a.create(KeyRequest("acme", "user", expires_in_s=60, until_ms=until_ms))
    assert exact.view.expires_ms == until_ms
    with pytest.raises(SmgError, match="ends 1 s earlier") as late:
        nodes.a.create(KeyRequest("acme", "user", expires_in_s=61, until_ms=until_ms))
    assert (late.value.status, late.value.code) == (403, "key_outlives_maker")
    assert len(nodes.a.keys(revoked=True)) == 2
