"""What the core counts is written down, and nothing else is."""

import re
from pathlib import Path

from smg_mesh.swim import counter_names as notes
from smg_mesh.swim.counter_names import NOTES

ROOM = Path(notes.__file__).parent


def test_every_note_is_explained_and_every_explanation_used() -> None:
    source = "".join(path.read_text() for path in sorted(ROOM.rglob("*.py")))
    used = set(re.findall(r"\bnote\(\s*\"(\w+)\"", source))
    assert used == set(NOTES)
    assert all(meaning and not meaning.endswith(".") for meaning in NOTES.values())
