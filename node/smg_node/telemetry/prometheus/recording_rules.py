"""Recording rules: the rule file for Prometheus, made from the declared recordings.

`python -m smg_node.telemetry.prometheus.recording_rules` prints it; `deploy/prometheus/recording.yaml` is its output.
"""

import sys
from typing import Final

import yaml

from smg_node.telemetry.prometheus.recordings import RECORDINGS

_HEAD: Final = "# Generated from smg_node/telemetry/prometheus/recordings.py by `make reference`; do not edit.\n"


def render_recordings() -> str:
    """Return a rule file of Prometheus; the meaning of each rule stands above it."""
    lines = [_HEAD, "groups:\n", "- name: smg-node-recordings\n", "  rules:\n"]
    for one in RECORDINGS:
        rule = yaml.safe_dump(
            {"record": one.name, "expr": one.expression}, sort_keys=False, width=1000
        )
        first, *rest = rule.splitlines()
        lines += [f"  # {one.meaning}\n", f"  - {first}\n", *(f"    {line}\n" for line in rest)]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(render_recordings())
