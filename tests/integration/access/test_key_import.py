"""Keys of another gateway in a cluster of real nodes: imported by digest, good everywhere, and nowhere on disk.

The digests are made as LiteLLM makes its own: SHA-256 of the whole key, in hexadecimal.
"""

import csv
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from support.processes.mesh_nodes import MeshNode, Said, until
from support.processes.mesh_trio import Trio, running_members
from support.processes.node_api import call

pytestmark = pytest.mark.integration

KEYS: Final = 1_000
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Trio]:
    with running_members(tmp_path, ("a", "b"), "--telemetry.access-log") as two:
        yield two


def made_up_keys() -> list[str]:
    chance = random.Random(22)
    return ["sk-" + "".join(chance.choices(_ALPHABET, k=22)) for _ in range(KEYS)]


def export(file: Path, digests: Sequence[str]) -> Path:
    """Write digests as the table of that gateway comes out of its database."""
    with file.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["token", "key_alias", "team_id", "expires", "models"])
        for number, digest in enumerate(digests):
            table.writerow([digest, f"key {number}", f"team-{number % 10}", "", "{}"])
    return file


def admitted(node: MeshNode, key: str) -> int:
    return call(node, "GET", "/v1/models", headers={"authorization": f"Bearer {key}"}).status


def imported(node: MeshNode, root: str, file: Path, *words: str) -> Said:
    return node.admin("--key", root, "keys", "import", "--from", "litellm", file, *words, "--json")


def test_a_thousand_keys_are_good_on_all_nodes_and_a_second_import_changes_nothing(
    two: Trio, tmp_path: Path
) -> None:
    keys = made_up_keys()
    file = export(tmp_path / "keys.csv", [hashlib.sha256(key.encode()).hexdigest() for key in keys])
    root = two["a"].admin("keys", "create", "--role", "admin").out.strip()
    until(lambda: all(admitted(node, root) == 200 for node in two.living), "known")
    for words, created, unchanged in ((("--dry-run",), KEYS, 0), ((), KEYS, 0), ((), 0, KEYS)):
        said = imported(two["a"], root, file, *words)
        assert said.code == 0, said.err
        found = json.loads(said.out)
        assert (found["created"], found["unchanged"], found["refused"]) == (created, unchanged, [])
    last = keys[-1]
    until(lambda: admitted(two["b"], last) == 200, "the last key good on the other node")
    sample = [*keys[:20], *keys[-20:]]
    for node in two.living:
        assert {admitted(node, key) for key in sample} == {200}
        assert admitted(node, keys[0] + "x") == 401
        assert admitted(node, hashlib.sha256(keys[0].encode()).hexdigest()) == 401
    elsewhere = json.loads(imported(two["b"], root, file).out)
    assert (elsewhere["created"], elsewhere["unchanged"]) == (0, KEYS)
    audit = json.loads(two["b"].admin("--key", root, "audit", "--limit", "50", "--json").out)
    rows = [row for row in audit if row["action"] == "key.import"]
    assert sum(len(row["after"]["created"]) for row in rows) == KEYS
    two.close()
    files = [path for path in two.folder.rglob("*") if path.is_file() and path != file]
    content = {path: path.read_bytes() for path in files}
    assert any("keys" in path.name for path in content)
    digests = {key: hashlib.sha256(key.encode()) for key in sample}
    for key, digest in digests.items():
        for shown in (key.encode(), digest.digest(), digest.hexdigest().encode()):
            assert not [path for path, said in content.items() if shown in said]
        assert key not in two.logs()


def test_a_key_of_another_gateway_survives_restarts_and_can_be_revoked(
    two: Trio, tmp_path: Path
) -> None:
    key = made_up_keys()[0]
    file = export(tmp_path / "keys.csv", [hashlib.sha256(key.encode()).hexdigest()])
    root = two["a"].admin("keys", "create", "--role", "admin").out.strip()
    assert imported(two["a"], root, file).code == 0
    until(lambda: admitted(two["b"], key) == 200, "good on the other node")
    two.kill("b", others_know=False)
    two.start("b")
    until(lambda: admitted(two["b"], key) == 200, "good after a restart")
    rows = json.loads(two["b"].admin("--key", root, "keys", "list", "--json").out)["keys"]
    (found,) = [row for row in rows if row["foreign"]]
    assert (found["tenant"], found["name"], found["source"]) == ("team-0", "key 0", "cluster")
    assert two["b"].admin("--key", root, "keys", "revoke", found["id"]).code == 0
    until(lambda: all(admitted(node, key) == 401 for node in two.living), "revoked on both")
    again = imported(two["a"], root, file)
    assert (again.code, json.loads(again.out)["refused"][0]["code"]) == (1, "key_revoked")
    assert admitted(two["a"], key) == 401
