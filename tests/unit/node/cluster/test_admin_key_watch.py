"""The admin key file while the node runs: what is taken, what is kept, and what is said once."""

import logging
import os
from pathlib import Path

import pytest

from smg_node.access.api_key import key_text
from smg_node.access.identity import KeyAuthenticator
from smg_node.cluster.admin_key_file import read_admin_keys
from smg_node.cluster.admin_key_watch import AdminKeyWatch
from smg_node.cluster.api_keys import ClusterKeys
from smg_node.core.errors import SmgError
from smg_node.http.ports.keys import KeyRequest
from unit.node.cluster.test_api_keys import Nodes

ONE, TWO = key_text("one", "1" * 43), key_text("two", "2" * 43)


class Watched:
    """A file of keys, what a node makes of it, and its watch."""

    def __init__(self, folder: Path, *keys: str) -> None:
        self.path = folder / "admin.key"
        self.write(*keys)
        nodes = Nodes()
        file = read_admin_keys(self.path)
        self.keys = ClusterKeys(nodes.world.nodes["a"].keys, nodes.a._ground, file)
        self.watch = AdminKeyWatch(self.path, self.keys.take_file)
        self.authenticator = KeyAuthenticator(self.keys)

    def write(self, *keys: str, mode: int = 0o600) -> None:
        self.path.write_text("".join(f"{key}\n" for key in keys))
        self.path.chmod(mode)

    def good(self, key: str) -> bool:
        try:
            return self.authenticator.identify(key).role == "admin"
        except SmgError:
            return False


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path, ONE, TWO)


async def test_a_removed_line_stops_counting_and_a_new_one_counts(watched: Watched) -> None:
    await watched.watch.look()
    version = watched.keys.version
    assert watched.good(ONE)
    three = key_text("three", "3" * 43)
    watched.write(TWO, three)
    await watched.watch.look()
    assert watched.keys.version != version
    assert [watched.good(key) for key in (ONE, TWO, three)] == [False, True, True]
    version = watched.keys.version
    await watched.watch.look()
    assert watched.keys.version == version


async def test_another_secret_under_the_same_id_is_another_key(watched: Watched) -> None:
    other = key_text("one", "9" * 43)
    assert watched.good(ONE)
    watched.write(other)
    await watched.watch.look()
    assert (watched.good(ONE), watched.good(other)) == (False, True)


@pytest.mark.parametrize(
    "content", ["", "# none\n", "no key at all\n", f"{ONE}\n{ONE}\n", "x" * 70_000]
)
async def test_a_file_that_will_not_do_keeps_the_old_keys_and_is_said_once(
    watched: Watched, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    await watched.watch.look()
    version = watched.keys.version
    watched.path.write_text(content)
    await watched.watch.look()
    # It may be half written.
    assert caplog.messages == []
    for _ in range(60):
        await watched.watch.look()
    (said,) = caplog.messages
    assert said.startswith("kept the old admin keys: ")
    assert "1" * 43 not in said
    assert watched.good(ONE)
    assert watched.keys.version == version
    watched.write(TWO)
    await watched.watch.look()
    assert not watched.good(ONE)
    watched.path.write_text(content)
    await watched.watch.look()
    await watched.watch.look()
    assert len([one for one in caplog.messages if one.startswith("kept")]) == 2
    assert watched.good(TWO)


async def test_a_missing_file_keeps_the_old_keys(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    await watched.watch.look()
    watched.path.unlink()
    for _ in range(5):
        await watched.watch.look()
    assert watched.good(ONE)
    assert len(caplog.messages) == 1


async def test_a_link_that_is_exchanged_is_a_change(tmp_path: Path) -> None:
    for name, key in (("v1", ONE), ("v2", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "admin.key").write_text(f"{key}\n")
        os.utime(tmp_path / name / "admin.key", (1, 1))
    (tmp_path / "data").symlink_to("v1")
    nodes = Nodes()
    path = tmp_path / "data" / "admin.key"
    keys = ClusterKeys(nodes.world.nodes["a"].keys, nodes.a._ground, read_admin_keys(path))
    watch = AdminKeyWatch(path, keys.take_file)
    await watch.look()
    (tmp_path / "new").symlink_to("v2")
    (tmp_path / "new").rename(tmp_path / "data")
    await watch.look()
    assert keys.get("one") is None
    assert keys.get("two") is not None


async def test_a_file_that_others_may_read_from_now_on_is_said(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    await watched.watch.look()
    watched.write(ONE, mode=0o644)
    with caplog.at_level(logging.WARNING):
        await watched.watch.look()
    assert any("mode 0644" in message for message in caplog.messages)


async def test_a_process_that_starts_with_a_broken_file_is_closed_until_it_is_mended(
    tmp_path: Path,
) -> None:
    from smg_node.cluster.service_factory import build_keys
    from smg_node.config.frozen_settings import plain_settings
    from support.tools.configuration import load

    path = tmp_path / "admin.key"
    path.write_text("")
    nodes = Nodes()
    settings = plain_settings(load(["--auth.admin-key-file", str(path)]).settings)
    keys = build_keys(settings, nodes.world.nodes["a"], lambda: 1)
    assert keys.closed
    assert len(keys) == 0
    watch = AdminKeyWatch(path, keys.take_file)
    path.write_text(f"{ONE}\n")
    await watch.look()
    assert KeyAuthenticator(keys).identify(ONE).role == "admin"
    assert set(keys.loops()) == {"admin keys"}


def test_a_node_without_a_file_follows_none() -> None:
    nodes = Nodes()
    nodes.a.create(KeyRequest("", "admin"))
    assert nodes.a.loops() == {}
