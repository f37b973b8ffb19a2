"""What sessions with servers of tools cost that nobody uses just now, with their tools and streams, and their records."""

import os
import subprocess
import sys
from pathlib import Path

from support.house.tree import ROOT
from support.mcp.counting_process import counting_server

SESSIONS = 100
MB_MAX = 8.0


def test_a_hundred_idle_sessions_take_little_memory(tmp_path: Path) -> None:
    with counting_server(tmp_path, "--era", "handshake") as url:
        done = subprocess.run(
            [sys.executable, "-m", "support.mcp.session_memory", url, str(SESSIONS)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= MB_MAX
