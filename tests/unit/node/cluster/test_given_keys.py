"""Keys in a node's own settings: good here, closing what an admin key closes, and never shown."""

import pytest

from smg_node.access.identity import KeyAuthenticator
from smg_node.cluster.admin_key_file import FileKeys
from smg_node.cluster.api_keys import ClusterKeys
from smg_node.cluster.given_keys import GivenKeys, read_given_keys
from smg_node.config.frozen_settings import plain_settings
from smg_node.config.schema.problems import ConfigurationError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.keys import KeyRequest
from support.tools.configuration import load
from unit.node.cluster.test_api_keys import Nodes

KEY = "sk-planted-0123456789abcdefghijklm"


def given(*flags: str) -> GivenKeys:
    return read_given_keys(plain_settings(load(flags).settings).auth)


def keys_of(nodes: Nodes, found: GivenKeys, file: FileKeys | None = None) -> ClusterKeys:
    return ClusterKeys(nodes.world.nodes["a"].keys, nodes.a._ground, file, found)


def test_flags_of_smg_are_keys_of_this_node() -> None:
    found = given(
        *("--tenant-api-key", f"acme:{KEY}1", "--tenant-api-key", f"other:{KEY}:with:colons"),
        *("--control-plane-api-keys", f"one:The One:admin:{KEY}2", f"two:Two:user:{KEY}3"),
        *("--api-key", KEY),
    )
    keys = KeyAuthenticator(keys_of(Nodes(), found))
    expected = {
        f"{KEY}1": ("acme", "user"),
        f"{KEY}:with:colons": ("other", "user"),
        f"{KEY}2": ("", "admin"),
        f"{KEY}3": ("two", "user"),
        KEY: ("default", "user"),
    }
    for key, (tenant, role) in expected.items():
        who = keys.identify(key)
        assert (who.tenant, who.role) == (tenant, role)
    assert keys.closed
    with pytest.raises(SmgError):
        keys.identify(f"{KEY}4")


def test_the_shared_key_administers_as_long_as_no_key_is_for_that() -> None:
    who = KeyAuthenticator(keys_of(Nodes(), given("--api-key", KEY))).identify(KEY)
    assert (who.tenant, who.role) == ("default", "admin")


def test_given_keys_are_listed_as_such_and_cannot_be_revoked() -> None:
    nodes = Nodes()
    keys = keys_of(nodes, given("--tenant-api-key", f"acme:{KEY}"))
    (view,) = keys.keys(revoked=False)
    assert (view.source, view.foreign, view.tenant) == ("file", True, "acme")
    assert KEY not in repr(view)
    with pytest.raises(SmgError) as caught:
        keys.revoke(view.id, force=True)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "key_of_file")
    assert not nodes.b.closed


def test_the_last_admin_key_is_the_last_also_where_tenants_keys_are_given() -> None:
    nodes = Nodes()
    keys = keys_of(nodes, given("--tenant-api-key", f"acme:{KEY}"))
    admin = keys.create(KeyRequest("", "admin"))
    with pytest.raises(SmgError) as caught:
        keys.revoke(admin.view.id, force=False)
    assert caught.value.code == "last_admin_key"
    # Forced, the cluster is open again, and this node is not.
    assert not keys.revoke(admin.view.id, force=True).opens
    assert (keys.closed, nodes.b.closed) == (True, False)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--api-key", "short-0123"), "auth.api_key: KEY: a key of 10 characters can be guessed"),
        (("--tenant-api-key", KEY), "auth.tenant_api_keys[0]: it is not TENANT:KEY"),
        (("--tenant-api-key", f"a b:{KEY}"), "auth.tenant_api_keys[0]: TENANT: a tenant is"),
        (
            ("--control-plane-api-keys", f"a:b:root:{KEY}"),
            "auth.control_plane_api_keys[0]: ROLE: its role is neither admin nor user",
        ),
        (
            ("--tenant-api-key", f"a:{KEY}", f"b:{KEY}"),
            "auth.tenant_api_keys[1]: the same key as auth.tenant_api_keys[0]",
        ),
    ],
)
def test_what_gives_no_key_is_refused_by_its_place(flags: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        given(*flags)
    (line,) = caught.value.lines()
    assert line.startswith(said)
    assert KEY not in line


def test_short_keys_are_warned_about_by_their_place() -> None:
    assert given("--api-key", "sk-0123456789abcdef").warnings == (
        "auth.api_key has fewer than 32 characters: it could be guessed",
    )
    assert given("--api-key", KEY).warnings == ()
