#!/usr/bin/env bash
# typer 0.29.2 (2026): options are parsed by pydantic's type adapters.
# Expected: a command with one option imports typer and its copy of click, as earlier releases did.
# Seen: calling it imports pydantic and pydantic_core as well, 257 modules instead of 142.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check typer==0.29.2
cat > "$folder/command.py" <<'PY'
import sys

import typer

imported = len(sys.modules)
before = {name.partition(".")[0] for name in sys.modules}
app = typer.Typer(add_completion=False)


@app.command()
def hello(name: str = "you") -> None:
    print(f"hello {name}")


app(["--name", "x"], standalone_mode=False)
after = {name.partition(".")[0] for name in sys.modules}
print("imported by typer itself:", imported, "modules; after one command:", len(sys.modules))
print("new packages:", ", ".join(sorted(after - before - set(sys.stdlib_module_names))))
assert "pydantic" not in before, "typer imports pydantic at once"
assert {"pydantic", "pydantic_core"} <= after, "typer parses without pydantic"
PY
"$folder/venv/bin/python" "$folder/command.py"
