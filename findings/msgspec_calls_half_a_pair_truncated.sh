#!/usr/bin/env bash
# msgspec 0.22.0: which error a JSON string with half of a surrogate pair gives depends on what stands behind it.
# Expected: one error for one mistake; "truncated" only for a text that is cut off.
# Seen: with fewer than six bytes behind the half, the error says that the input was truncated, though the text is whole
# and Python's own decoder reads it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check msgspec==0.22.0
cat > "$folder/halves.py" <<'PY'
import json

import msgspec


def told(text: str) -> str:
    json.loads(text)
    try:
        msgspec.json.decode(text.encode())
    except msgspec.DecodeError as error:
        return str(error)
    return "read"


near, far = told('{"a":"\\ud83d"}'), told('{"a":"\\ud83d and so on"}')
print("near the end:", near)
print("elsewhere:   ", far)
assert "truncated" in near
assert "surrogate" in far
PY
"$folder/venv/bin/python" "$folder/halves.py"
