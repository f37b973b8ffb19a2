#!/usr/bin/env bash
# litellm 1.110.2 (2026): its table of prices spells the price of a long-lived cache write in two ways, and zero in a third.
# Expected: one field says what a token costs that is kept in a vendor's cache for longer than the usual minutes.
# Seen: Claude's models have `cache_creation_input_token_cost_above_1hr`, OpenAI's `…_above_12hr` and none of the former; and
# some models that charge nothing apart for writes say 0.0 and not nothing, which reads as "writes are free".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder" litellm==1.110.2
cat > "$folder/prices.py" <<'PY'
import json
import sys
import zipfile
from collections import Counter
from pathlib import Path

[wheel] = Path(sys.argv[1]).glob("litellm-*.whl")
with zipfile.ZipFile(wheel) as packed:
    name = next(n for n in packed.namelist() if n.endswith("model_prices_and_context_window_backup.json"))
    table = json.loads(packed.read(name))
WRITE = "cache_creation_input_token_cost"
spelled = Counter()
free = []
for model, row in table.items():
    for field in row:
        if field.startswith(WRITE + "_above_") and "hr" in field and "tokens" not in field:
            spelled[row.get("litellm_provider", "?"), field.removeprefix(WRITE)] += 1
    if row.get(WRITE) == 0.0 and row.get("input_cost_per_token"):
        free.append(model)
for (provider, field), count in sorted(spelled.items()):
    print(f"{provider}: {count} models with {field}")
print(f"{len(free)} models whose writes cost 0.0 and whose prompts do not: {sorted(free)[:3]}")
suffixes = {field for _, field in spelled}
assert {"_above_1hr", "_above_12hr"} <= suffixes, "there is one spelling now"
assert not any(p == "openai" and f == "_above_1hr" for p, f in spelled), "OpenAI's rows have the usual one too"
assert free, "no write is free any more"
PY
"$folder/venv/bin/python" "$folder/prices.py" "$folder"
