"""Machine description beside every table: CPU model, load, CPU pressure, steal time, commit of this
source.
"""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from smg_chaos.bench.figures.interpreter import step_ns

_GIT_S: Final = 10.0
_STOLEN: Final = 8
"""The place in the first line of /proc/stat."""
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
    """Return the per cent of the last ten seconds in which a task waited for a CPU; 0 where the
    kernel does not say.
    """
    line = _first_line("/proc/pressure/cpu")
    for word in line.split():
        if word.startswith("avg10="):
            return float(word[6:])
    return 0.0


def stolen_s() -> float:
    """Return the steal time in seconds, of all CPUs together: what a virtual machine's host gave to
    others; 0 if unknown.
    """
    fields = _first_line("/proc/stat").split()
    return int(fields[_STOLEN]) / os.sysconf("SC_CLK_TCK") if len(fields) > _STOLEN else 0.0


def cpu_model(told: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the first CPU, with family and model if known: one name may stand for
    several generations.
    """
    try:
        lines = told.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    said: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    name = said.get("model name") or platform.processor()
    family, model = said.get("cpu family"), said.get("model")
    return f"{name} (family {family}, model {model})" if family and model else name


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
    """Return the description that stands beside every table."""
    source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return {
        "cpu": cpu_model(),
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
