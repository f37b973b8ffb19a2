#!/usr/bin/env bash
# litellm 1.110.2 and genai-prices 0.2.3 (2026): two published tables of the same vendors' prices, and they disagree.
# Expected: for a model that both name alike, a token of a short prompt costs the same in both.
# Seen: of 116 that six vendors sell under one name in both, 6 differ at six o'clock in the morning (UTC), and 12 in the
# evening, because some of DeepSeek's cost half then: genai-prices knows hours, litellm only the dear ones. Of the 6, xAI's
# grok-code-fast-1 costs five times as much in one as in the other. A bill by a table is right as far as the table is.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check genai-prices==0.2.3
"$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$folder" litellm==1.110.2
cat > "$folder/compare.py" <<'PY'
import json
import sys
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from genai_prices import Usage, calc_price

[wheel] = Path(sys.argv[1]).glob("litellm-*.whl")
with zipfile.ZipFile(wheel) as packed:
    name = next(n for n in packed.namelist() if n.endswith("model_prices_and_context_window_backup.json"))
    table = json.loads(packed.read(name))
VENDORS = {
    "anthropic": "anthropic", "deepseek": "deepseek", "gemini": "google", "mistral": "mistral", "openai": "openai", "xai": "x-ai",
}


def compared(hour):
    """Return how many models have one name in both, and those whose prompts cost something else at that hour."""
    when, seen, unlike = datetime(2026, 11, 2, hour, tzinfo=UTC), Counter(), {}
    for full, row in table.items():
        vendor = VENDORS.get(row.get("litellm_provider", ""))
        one = row.get("input_cost_per_token")
        if vendor is None or not one or row.get("mode") not in ("chat", "responses"):
            continue
        model = full.rpartition("/")[2]
        try:
            found = calc_price(Usage(input_tokens=1000), model, provider_id=vendor, genai_request_timestamp=when)
        except LookupError:
            continue
        if found.model.id != model:
            continue
        seen[vendor] += 1
        other = float(found.input_price) / 1000
        if abs(other - one) > 0.01 * one:
            unlike[full] = round(1e6 * one, 4), round(1e6 * other, 4)
    return sum(seen.values()), unlike


both, dear = compared(6)
_, cheap = compared(18)
for name, unlike in (("06:00", dear), ("18:00", cheap)):
    print(f"{name} UTC: {len(unlike)} of {both} differ; dollars a million tokens, litellm and genai-prices:")
    for full, prices in sorted(unlike.items()):
        print("  %8s %8s  %s" % (*prices, full))
assert both > 50, "few models have one name in both"
assert 3 <= len(dear) < len(cheap), "they agree, or the hour makes no difference any more"
assert any(max(pair) > 3 * min(pair) for pair in dear.values()), "no price is a third of the other"
PY
"$folder/venv/bin/python" "$folder/compare.py" "$folder"
