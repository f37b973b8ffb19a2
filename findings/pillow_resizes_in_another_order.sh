#!/usr/bin/env bash
# Pillow 12.3.0 and 13.0.0: the same call of `resize` on the same picture gives other levels.
# Expected: bicubic resizing of 8-bit RGB is horizontal first and then vertical, with 8 bits in between, as before.
# Seen: 13.0.0 goes vertically first where more than twice as many rows are lost as columns (python-pillow/Pillow#9549,
# meant as a faster way), and levels that are cut to 0..255 between the passes are others then: 20 levels at edges.
# Two calls, one for each axis, agree in both versions. Golden pictures, perceptual hashes and the inputs of models
# change with the upgrade.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/resize.py" <<'PY'
import hashlib
import sys
from pathlib import Path

from PIL import Image

# Black and white blocks of three pixels, from a hash: edges, as text and drawings have them.
WIDTH, HEIGHT, COLUMNS, ROWS = 480, 640, 420, 140
blocks = {
    (x, y): 255 * (hashlib.sha256(f"{x} {y}".encode()).digest()[0] & 1)
    for x in range(WIDTH // 3)
    for y in range(HEIGHT // 3 + 1)
}


def line(y):
    return bytes(level for x in range(WIDTH) for level in [blocks[x // 3, y // 3]] * 3)


image = Image.frombytes("RGB", (WIDTH, HEIGHT), b"".join(map(line, range(HEIGHT))))
bicubic = Image.Resampling.BICUBIC
made = image.resize((COLUMNS, ROWS), bicubic)
one_by_one = image.resize((COLUMNS, HEIGHT), bicubic).resize((COLUMNS, ROWS), bicubic)
Path(sys.argv[1]).write_bytes(made.tobytes() + one_by_one.tobytes())
PY
for version in 12.3.0 13.0.0; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "pillow==$version"
  "$folder/$version/bin/python" "$folder/resize.py" "$folder/$version.rgb"
done
cat > "$folder/compare.py" <<'PY'
import sys
from pathlib import Path

old, new = (Path(name).read_bytes() for name in sys.argv[1:])
half = len(old) // 2


def compared(one, two):
    """Return the largest difference and the share of values that differ."""
    away = [abs(a - b) for a, b in zip(one, two, strict=True)]
    return max(away), sum(map(bool, away)) / len(away)


most, share = compared(old[:half], new[:half])
print(f"one call:  up to {most} levels, {share:.0%} of values")
apart = compared(old[half:], new[half:])
print(f"two calls: up to {apart[0]} levels")
assert most >= 15
assert share > 0.05
assert apart[0] <= 1
PY
python3 "$folder/compare.py" "$folder/12.3.0.rgb" "$folder/13.0.0.rgb"
