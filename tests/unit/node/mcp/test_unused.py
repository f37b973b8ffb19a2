"""A node that is told of no server imports nothing of this room."""

import os
import subprocess
import sys


def test_the_programs_of_a_node_import_nothing_of_it() -> None:
    code = (
        "import sys, smg_node.cli, smg_node.admin.cli, smg_node.wiring.node_process\n"
        "import smg_node.wiring.data_process\n"
        "print([name for name in sys.modules if name.startswith(('smg_node.mcp', 'mcp'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
