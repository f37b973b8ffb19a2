"""Records what SMG makes of manifests: `PYTHONPATH=tests .venv/bin/python tests/support/discovery/record_manifests.py`.

SMG is the one that `make bench-peers` installs; another one is named as the first argument. It is started for each manifest
and each way of routing, and what it logs of its discovery is written down. That takes some minutes.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from support.discovery.manifest_cases import CASES, RECORDED
from support.processes.servers import own_port

_SMG: Final = Path(".cache/peers/smg/bin/smg")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_REFUSED: Final = re.compile(r"invalid discovery manifest \S+: (.*); (?:keeping|no workers)")
_LISTED: Final = re.compile(r"Discovery manifest \S+ lists (\d+) worker")
_WORKER: Final = re.compile(r"Registering worker (\S+) \((\w+)\) as ")
_PATIENCE_S: Final = 30.0


def judge(program: Path, text: str, *way: str) -> list[str] | str:
    """Return the workers that SMG has of a manifest, or why it refuses it."""
    with tempfile.TemporaryDirectory() as folder, own_port() as port, own_port() as metrics:
        manifest, log = Path(folder) / "manifest.json", Path(folder) / "log"
        manifest.write_text(text)
        command = [
            *(str(program), "launch", *way, "--host", "127.0.0.1", "--port", str(port)),
            *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics)),
            *("--discovery-provider", "file", "--discovery-file", str(manifest)),
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            return _outcome(log)
        finally:
            process.kill()
            process.wait()


def _outcome(log: Path) -> list[str] | str:
    give_up_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_s:
        said = _COLOURS.sub("", log.read_text(errors="replace"))
        refused, listed = _REFUSED.search(said), _LISTED.search(said)
        workers = sorted(f"{url} {role.lower()}" for url, role in _WORKER.findall(said))
        if refused:
            return re.sub(r" at line \d+ column \d+", "", refused.group(1))
        if listed and len(workers) == int(listed.group(1)):
            return workers
        time.sleep(0.05)
    raise TimeoutError(f"SMG says nothing of its manifest:\n{log.read_text(errors='replace')}")


def main() -> None:
    """Record all cases."""
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else _SMG
    version = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    cases = {
        name: {
            "regular": judge(program, text),
            "pairs": judge(program, text, "--pd-disaggregation"),
        }
        for name, text in CASES.items()
    }
    recorded = {"judge": version or "smg 1.13.0", "cases": cases}
    RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
