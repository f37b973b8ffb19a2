"""On what and under which weather it was measured: without that, figures are gossip."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from smg_chaos.bench.interpreter import step_ns

_GIT_S: Final = 10.0
_LIBRARIES: Final = (
    "uvloop",
    "aiohttp",
    "grpcio",
    "protobuf",
    "msgspec",
    "tokenizers",
    "fastokens",
)


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""


def load_average() -> float:
    """Return the load of the last minute."""
    return os.getloadavg()[0]


def pressure() -> float:
    """Return for how much of the last ten seconds somebody waited for a CPU, in per cent; 0 if untold."""
    line = _first_line("/proc/pressure/cpu")
    for word in line.split():
        if word.startswith("avg10="):
            return float(word[6:])
    return 0.0


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()


def _commit() -> str:
    """Return the commit this source is from, with + if there are changes; nothing outside a clone."""
    here = Path(__file__).parent
    said = []
    for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain"]):
        try:
            done = subprocess.run(
                ["git", *words],
                cwd=here,
                capture_output=True,
                text=True,
                timeout=_GIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        if done.returncode:
            return ""
        said.append(done.stdout.strip())
    return said[0] + ("+" if said[1] else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def describe() -> dict[str, Any]:
    """Return what should stand beside every table."""
    source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "python_step_ns": round(step_ns()),
        "clock_source": _first_line(source),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "load_average": list(os.getloadavg()),
        "cpu_pressure_10s": pressure(),
        "commit": _commit(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }
