"""`smg-admin top` where operators are answered by listeners of their own: it goes on when the node it asked dies."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from smg_node.admin.client import AdminClient
from smg_node.admin.top.poller import Poller
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node, until

pytestmark = pytest.mark.integration


def operators_of(node: MeshNode) -> str:
    found = re.search(r"operators are answered on (http://[0-9.:]+)", node.process.said())
    assert found is not None, node.process.said()
    return found[1]


def test_top_turns_to_the_listener_for_operators_of_another_node(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    apart = ("--http.admin-listen", "127.0.0.1:0")
    with ExitStack() as second, ExitStack() as first:
        a = first.enter_context(mesh_node(tmp_path / "a", [*flags_of("a", key=key), *apart]))
        joined = [*flags_of("b", key=key, join=[a.mesh]), *apart]
        b = second.enter_context(mesh_node(tmp_path / "b", joined))
        where = {node.name: operators_of(node) for node in (a, b)}
        poller = Poller(AdminClient(where["a"], "", 5.0), [where["a"]])

        def seen() -> set[str]:
            found = poller.look(workers=False, limits=False)
            return {name for name, row in found.nodes.items() if row.admin and not row.silent}

        until(lambda: seen() == {"a", "b"}, "both are seen with their listeners")
        first.close()
        assert poller.look(workers=False, limits=False).node == "b"
        assert poller.url == where["b"]
