"""Recorded answers for tests: read out of the cassettes in the source distributions that requirements-recordings.lock pins.

    python tools/recordings.py PYLOCK FOLDER

PYLOCK says where the distributions are: what `uv pip compile --format pylock.toml` wrote of the lock. Each is fetched as
a file, held against the lock's hashes and read; nothing in it is built or run. FOLDER gets `answers.jsonl`, one exchange
a line: what was asked at which URL, the status, the body without its compression. It is complete where it is there.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import ssl
import sys
import tarfile
import time
import tomllib
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

LOCK = Path(__file__).resolve().parent.parent / "requirements-recordings.lock"
FETCH_TIMEOUT_S = 120.0
TRIES_S = (0.0, 2.0, 10.0)
"""How long each try waits before it begins."""
DISTRIBUTION_MAX_BYTES = 160 << 20
"""The largest has 101 MB, nearly all of it pictures that its tests send."""
CASSETTE_MAX_BYTES = 24 << 20
ANSWERS_MAX_BYTES = 256 << 20
REQUEST_MAX_BYTES = 64 << 10
"""A larger request holds media; nothing is asked of it."""
HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")


def pinned() -> dict[str, set[str]]:
    """Return the hashes that the lock has for each name and version."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, set[str]] = {}
    for line in filter(None, text.splitlines()):
        found[line.split()[0]] = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
    return found


def distributions(pylock: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the pinned distributions with their bytes; SystemExit for one that is not what was pinned."""
    places = {
        f"{one['name']}=={one['version']}": one.get("sdist")
        for one in tomllib.loads(pylock.read_text(encoding="utf-8"))["packages"]
    }
    for pin, hashes in pinned().items():
        place = places.get(pin)
        if place is None:
            sys.exit(f"recordings: the index has no source distribution of {pin}")
        print(f"── fetching the recordings in {pin}", file=sys.stderr)
        source = place.get("url") or Path(place["path"]).resolve().as_uri()
        raw = fetched(source)
        if hashlib.sha256(raw).hexdigest() not in hashes:
            sys.exit(f"recordings: {pin} is not what requirements-recordings.lock pins")
        yield pin, raw


def fetched(source: str) -> bytes:
    """Return what is at a URL, up to one byte more than it may have; SystemExit where it cannot be had."""
    # Whom pip trusts is trusted here: the index may be one of the house.
    trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    failure: OSError | None = None
    for wait_s in TRIES_S:
        time.sleep(wait_s)
        try:
            with urllib.request.urlopen(source, timeout=FETCH_TIMEOUT_S, context=trust) as answer:
                raw: bytes = answer.read(DISTRIBUTION_MAX_BYTES + 1)
                return raw
        except OSError as error:
            failure = error
    sys.exit(f"recordings: a source distribution cannot be fetched: {failure}")


def cassettes(raw: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the cassettes of a distribution by their names in it."""
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:gz") as archive:
        for entry in archive:
            name = entry.name.partition("/")[2]
            if "/cassettes/" not in f"/{name}" or not name.endswith((".yaml", ".yaml.gz")):
                continue
            file = archive.extractfile(entry)
            if file is None or entry.size > CASSETTE_MAX_BYTES:
                continue
            text = file.read()
            yield (
                name,
                yaml.load(
                    gzip.decompress(text) if name.endswith(".gz") else text, yaml.CSafeLoader
                ),
            )


def exchanges(cassette: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the requests of a cassette with their responses."""
    if "requests" in cassette:
        return list(zip(cassette["requests"], cassette["responses"], strict=True))
    rows = cassette.get("interactions")
    return [(row["request"], row["response"]) for row in rows] if isinstance(rows, list) else []


def body_of(message: dict[str, Any]) -> bytes:
    """Return a body, whether its recorder wrote it as it was, parsed, or in base64."""
    if message.get("parsed_body") is not None:
        parsed = message["parsed_body"]
        return (
            parsed.encode() if isinstance(parsed, str) else json.dumps(parsed, default=str).encode()
        )
    body = message.get("body")
    if isinstance(body, dict):
        body = body.get("string")
    return body.encode() if isinstance(body, str) else body or b""


def plain(body: bytes) -> bytes:
    """Return a body without its compression, by what it begins with: a recorder may keep the header and not the bytes."""
    if body[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(body)
    return body


def line_of(pin: str, name: str, asked: dict[str, Any], told: dict[str, Any]) -> str:
    """Return one exchange as a line of JSON."""
    headers = {key.lower(): value for key, value in (told.get("headers") or {}).items()}
    firsts = {key: value[0] if isinstance(value, list) else value for key, value in headers.items()}
    request = plain(body_of(asked))
    return json.dumps(
        {
            "package": pin,
            "cassette": name,
            "method": asked.get("method", ""),
            "url": asked.get("uri", ""),
            "request": request.decode("utf-8", "replace")
            if len(request) <= REQUEST_MAX_BYTES
            else "",
            "status": (told.get("status") or {}).get("code", told.get("status_code", 0)),
            "headers": {key: firsts[key] for key in HEADERS if isinstance(firsts.get(key), str)},
            "body": base64.b64encode(plain(body_of(told))).decode(),
        }
    )


def main() -> None:
    """Write the answers of all pinned distributions."""
    pylock, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    made, size = folder / "answers.jsonl.part", 0
    with made.open("w", encoding="utf-8") as out:
        for pin, raw in distributions(pylock):
            for name, cassette in cassettes(raw):
                for asked, told in exchanges(cassette):
                    line = line_of(pin, name, asked, told)
                    size += out.write(line + "\n")
                    if size > ANSWERS_MAX_BYTES:
                        sys.exit(f"recordings: more than {ANSWERS_MAX_BYTES} bytes")
    made.replace(folder / "answers.jsonl")


if __name__ == "__main__":
    main()
