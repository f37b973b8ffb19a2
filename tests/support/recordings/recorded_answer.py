"""Recorded answers: what real vendors answered, out of other projects' cassettes; `make recordings` fetches them.

They lie in `.cache/recordings/answers.jsonl`, one exchange a line, as `tools/recordings.py` writes them. No text of them
is a part of this project: tests read facts out of the vendors' own JSON, and hold what our listeners say against them.
"""

import base64
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

Api: TypeAlias = Literal["chat", "responses", "messages", "generate_content", "converse"]
FILE: Final = Path(__file__).resolve().parents[3] / ".cache" / "recordings" / "answers.jsonl"
_REDACTED: Final = "**REDACTED**"
_HOSTS: Final = (
    (r"api\.openai\.com", "openai"),
    (r".*\.openai\.azure\.com", "azure"),
    (r"api\.anthropic\.com", "anthropic"),
    (r"generativelanguage\.googleapis\.com", "google"),
    (r"(.*-)?aiplatform\.googleapis\.com", "vertex"),
    (r"bedrock-runtime\..*\.amazonaws\.com", "bedrock"),
    (r"api\.deepseek\.com", "deepseek"),
    (r"api\.together\.xyz", "together"),
    (r"openrouter\.ai", "openrouter"),
    (r"api\.groq\.com", "groq"),
    (r"api\.mistral\.ai", "mistral"),
    (r"api\.cerebras\.ai", "cerebras"),
    (r"router\.huggingface\.co", "huggingface"),
    (r"us\.inference\.heroku\.com", "heroku"),
    (r"localhost", "local"),
)
"""Whose answers they are, by host; others are no vendors of an API that is spoken here."""
_PATHS: Final[tuple[tuple[str, Api], ...]] = (
    (r".*/chat/completions", "chat"),
    (r".*/responses", "responses"),
    (r".*/v1/messages", "messages"),
    (r".*:(generateContent|streamGenerateContent)", "generate_content"),
    (r"(/bedrock)?/model/[^/]+/(converse|converse-stream)", "converse"),
    (r"/model/[^/]*anthropic[^/]*/(invoke|invoke-with-response-stream)", "messages"),
)
_COMPLETION: Final = b'"completion"'
"""What the oldest Claudes on Bedrock answer to a prompt of text: another API, that nobody speaks any more."""
_BY_HAND: Final = b'"status": "complete"'
"""Four recordings were written by their authors: no vendor has this status, which is none of the API's."""
_OPENAI: Final = "openai"


class _Line(msgspec.Struct, frozen=True):
    package: str
    cassette: str
    method: str
    url: str
    request: str
    status: int
    headers: dict[str, str]
    body: str


class _Asked(msgspec.Struct, frozen=True):
    messages: msgspec.Raw | None = None
    input: msgspec.Raw | None = None


class RecordedAnswer(msgspec.Struct, frozen=True):
    """One answer. `name` is where it was recorded; `framed`: its stream is AWS's frames around another API's events."""

    vendor: str
    api: Api
    name: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: bool
    framed: bool

    @property
    def good(self) -> bool:
        """Whether its status is one of success."""
        return 200 <= self.status < 300


_line: Final = msgspec.json.Decoder(_Line).decode
_asked: Final = msgspec.json.Decoder(_Asked).decode


@cache
def recorded_answers() -> tuple[RecordedAnswer, ...]:
    """Return the answers in APIs that are spoken here; AssertionError if they have not been fetched."""
    assert FILE.exists(), f"{FILE} is missing: run `make recordings`"
    found = list[RecordedAnswer]()
    with FILE.open("rb") as lines:
        for number, line in enumerate(lines):
            answer = _answer(_line(line), number)
            if answer is not None:
                found.append(answer)
    return tuple(found)


def answers_of(api: Api) -> list[RecordedAnswer]:
    """Return the good answers of one API."""
    return [one for one in recorded_answers() if one.api == api and one.good]


def _answer(line: _Line, number: int) -> RecordedAnswer | None:
    body = base64.b64decode(line.body)
    if line.method.upper() != "POST" or not body:
        return None
    place = urlsplit(line.url)
    vendor, api = _vendor(place.hostname or ""), _api(place.path)
    if line.url == _REDACTED:
        vendor, api = _OPENAI, _api_asked(line.request)
    if not vendor or api is None or _BY_HAND in body:
        return None
    if place.path.endswith("/invoke") and _COMPLETION in body:
        return None
    streamed = body.lstrip()[:1] not in (b"{", b"[")
    name = f"{line.package} {line.cassette} {number}"
    framed = streamed and place.path.endswith("/invoke-with-response-stream")
    headers = {key: value for key, value in line.headers.items() if value != _REDACTED}
    return RecordedAnswer(vendor, api, name, line.status, headers, body, streamed, framed)


def _vendor(host: str) -> str:
    return next((vendor for pattern, vendor in _HOSTS if re.fullmatch(pattern, host)), "")


def _api(path: str) -> Api | None:
    return next((api for pattern, api in _PATHS if re.fullmatch(pattern, path)), None)


def _api_asked(request: str) -> Api | None:
    """Return the API of a request whose URL was taken out of the recording."""
    try:
        asked = _asked(request)
    except msgspec.MsgspecError:
        return None
    if asked.messages is not None:
        return "chat"
    return "responses" if asked.input is not None else None
