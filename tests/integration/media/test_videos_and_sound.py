"""Videos, sound and files through a real node: official clients in front, simulated engines that fetch behind."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import anthropic
import openai
import pytest

from support.http import stream_client
from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.media.origin import Origin, origin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

EARS: Final = ("--script", "pictures", "--model", "eyes", "--vision", "qwen2_5_omni")
FILM: Final = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41" + bytes(range(256)) * 8
SONG: Final = b"RIFF\x24\x08\x00\x00WAVEfmt " + bytes(range(256)) * 8
A: Final = jpeg(320, 200)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def named(kind: str, url: str) -> str:
    """Return what the engine calls something that it was given by that URL."""
    return f"{kind} {hashlib.sha256(url.encode()).hexdigest()[:8]}"


FILM_URL: Final = f"data:video/mp4;base64,{encoded(FILM)}"
SONG_URL: Final = f"data:audio/wav;base64,{encoded(SONG)}"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    words = (*EARS, "--media-references")
    with running_simulated(tmp_path_factory.mktemp("engines"), *words) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def films() -> Iterator[Origin]:
    files = {"/a.mp4": FILM, "/a.wav": SONG, "/a.jpg": A, "/notes": b"the tide", "/b": b"%PDF-1.7"}
    with origin(files) as found:
        yield found


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, engines: Simulated, films: Origin
) -> Iterator[RunningNode]:
    flags = ("--media.fetch-private-hosts", films.host)
    folder = tmp_path_factory.mktemp("node")
    with running_node(folder, workers=[f"grpc://{engines.address}"], flags=flags) as running:
        yield running


def client(node: RunningNode) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


def chat(node: RunningNode, *parts: dict[str, Any]) -> Any:
    content: Any = [{"type": "text", "text": "What is it?"}, *parts]
    messages: Any = [{"role": "user", "content": content}]
    return client(node).chat.completions.create(model="eyes", messages=messages)


def said(node: RunningNode, *parts: dict[str, Any]) -> str:
    return str(chat(node, *parts).choices[0].message.content)


def video(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "video_url", "video_url": {"url": url}, **more}


def sound(content: bytes = SONG) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": encoded(content), "format": "wav"}}


def refused(node: RunningNode, *parts: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(openai.BadRequestError) as caught:
        chat(node, *parts)
    body: Any = caught.value.body
    assert isinstance(body, dict)
    return body


def test_a_chat_with_a_video_and_sound_by_the_official_client(node: RunningNode) -> None:
    before = node.metric("smg_node_media_items_total", modality="video", way="references")
    film, song = named("video", FILM_URL), named("audio", SONG_URL)
    assert said(node, video(FILM_URL, uuid="mine"), sound()) == f"I see 2: {film}, {song}."
    answer = chat(node, picture_part(data_url(A)), video(FILM_URL))
    assert str(answer.choices[0].message.content).startswith("I see 2: ")
    assert film in str(answer.choices[0].message.content)
    counted = node.metric("smg_node_media_items_total", modality="video", way="references")
    assert counted == before + 2
    assert node.metric("smg_node_media_bytes_total", modality="audio", source="data") >= len(SONG)


def test_urls_are_fetched_by_the_node_and_handed_on_as_data(
    node: RunningNode, films: Origin
) -> None:
    audio = {"type": "audio_url", "audio_url": {"url": films.url("/a.wav")}}
    text = said(node, video(films.url("/a.mp4")), audio)
    film = f"data:video/octet-stream;base64,{encoded(FILM)}"
    song = f"data:audio/octet-stream;base64,{encoded(SONG)}"
    assert text == f"I see 2: {named('video', film)}, {named('audio', song)}."
    assert {"/a.mp4", "/a.wav"} <= set(films.asked)


def test_files_are_what_their_content_is(node: RunningNode) -> None:
    words = {"type": "file", "file": {"file_data": encoded(b"the tide"), "filename": "a.txt"}}
    film = {"type": "file", "file": {"file_data": FILM_URL, "filename": "a.mp4"}}
    bare = chat(node)
    told = chat(node, words)
    assert told.usage.prompt_tokens > bare.usage.prompt_tokens + 4
    assert said(node, words) == "I see no picture."
    assert said(node, film) == f"I see 1: {named('video', FILM_URL)}."
    picture = {"type": "file", "file": {"file_data": data_url(A)}}
    assert said(node, picture).startswith("I see 1: ")


def test_responses_with_files_and_sound_by_the_official_client(
    node: RunningNode, films: Origin
) -> None:
    content: Any = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_file", "file_data": FILM_URL, "filename": "a.mp4"},
        {"type": "input_file", "file_url": films.url("/notes")},
        sound(),
    ]
    asked: Any = [{"role": "user", "content": content}]
    answer = client(node).responses.create(model="eyes", input=asked, store=False)
    film, song = named("video", FILM_URL), named("audio", SONG_URL)
    assert answer.output_text == f"I see 2: {film}, {song}."


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"type": "base64", "media_type": "text/plain", "data": encoded(b"a tide")}, "no picture"),
        ({"type": "base64", "media_type": "x/y", "data": encoded(b"a tide")}, "no picture"),
        ({"type": "base64", "media_type": "image/jpeg", "data": encoded(A)}, "I see 1: "),
    ],
)
def test_documents_of_messages_by_the_official_client(
    node: RunningNode, source: Any, words: str
) -> None:
    maker = anthropic.Anthropic(base_url=node.url, api_key="none", max_retries=0, timeout=60)
    content: Any = [
        {"type": "document", "source": source, "title": "Tides", "context": "of the sea"},
        {"type": "text", "text": "What?"},
    ]
    answer = maker.messages.create(
        model="eyes", max_tokens=64, messages=[{"role": "user", "content": content}]
    )
    block: Any = answer.content[0]
    assert words in block.text


def test_gemini_with_a_video_and_sound(node: RunningNode, films: Origin) -> None:
    parts = [
        {"text": "What is it?"},
        {"inlineData": {"mimeType": "video/mp4", "data": encoded(FILM)}},
        {"fileData": {"mimeType": "audio/wav", "fileUri": films.url("/a.wav")}},
    ]
    body = {"contents": [{"role": "user", "parts": parts}]}
    status, answer = stream_client.ask(node, "POST", "/v1beta/models/eyes:generateContent", body)
    assert status == 200, answer
    text = answer["candidates"][0]["content"]["parts"][0]["text"]
    assert text.startswith(f"I see 2: {named('video', FILM_URL)}, audio ")


PDF: Final = f"data:application/pdf;base64,{encoded(b'%PDF-1.7 x')}"


def test_what_cannot_be_shown_is_refused_with_its_path(node: RunningNode, films: Origin) -> None:
    where = "messages[0].content[1]"
    for part, path, code in (
        ({"type": "file", "file": {"file_data": PDF}}, "file", "unsupported_media"),
        (video("data:video/mp4;base64,AA!A"), "video_url", "invalid_value"),
        (video("ftp://a/b"), "video_url", "invalid_value"),
        (video("http://10.0.0.1/a"), "video_url", "media_forbidden"),
        (video(films.url("/none")), "video_url", "media_unavailable"),
    ):
        error = refused(node, part)
        assert (error["param"], error["code"]) == (f"{where}.{path}", code), error
    maker = anthropic.Anthropic(base_url=node.url, api_key="none", max_retries=0, timeout=60)
    source: Any = {"type": "url", "url": films.url("/b")}
    content: Any = [{"type": "document", "source": source}]
    messages: Any = [{"role": "user", "content": content}]
    with pytest.raises(anthropic.BadRequestError, match="no model here reads a PDF"):
        maker.messages.create(model="eyes", max_tokens=4, messages=messages)


def test_urls_may_be_handed_on_after_a_look_at_their_hosts(
    tmp_path: Path, engines: Simulated, films: Origin
) -> None:
    flags: Sequence[str] = ("--media.clip-urls", "handed_on", "--media.video-bytes-max", "1024")
    worker = f"grpc://{engines.address}"
    with running_node(tmp_path, workers=[worker], flags=flags) as node:
        assert refused(node, video(films.url("/a.mp4")))["code"] == "media_forbidden"
        error = refused(node, video(FILM_URL))
        assert error["code"] == "media_too_large"
        assert "media.video_bytes_max" in error["message"]
    flags = (*flags, "--media.fetch-private-hosts", films.host)
    asked = len(films.asked)
    with running_node(tmp_path / "open", workers=[worker], flags=flags) as node:
        url = films.url("/a.mp4")
        assert said(node, video(url)) == f"I see 1: {named('video', url)}."
        assert len(films.asked) == asked


@pytest.mark.parametrize(
    ("contract", "flags"),
    [
        ("vllm", ()),
        ("sglang", ()),
        ("tokenspeed", ()),
        ("trtllm", ()),
    ],
)
def test_engines_that_take_none_say_who_does(
    tmp_path: Path, films: Origin, contract: str, flags: Sequence[str]
) -> None:
    with ExitStack() as stack:
        words = (*EARS, "--contract", contract, *flags)
        simulated = stack.enter_context(running_simulated(tmp_path, *words))
        node = stack.enter_context(running_node(tmp_path, workers=[f"grpc://{simulated.address}"]))
        asked = list(films.asked)
        error = refused(node, picture_part(data_url(A)), video(films.url("/a.mp4")))
        assert error["code"] == "unsupported_parameter"
        assert error["param"] == "messages[0].content[2].video_url"
        assert "vLLM takes them by reference" in error["message"]
        assert films.asked == asked


def test_explain_tells_of_a_video(node: RunningNode) -> None:
    content = [{"type": "text", "text": "What?"}, video(FILM_URL)]
    messages: Any = [{"role": "user", "content": content}]
    raw = client(node).chat.completions.with_raw_response.create(model="eyes", messages=messages)
    name = raw.headers["x-request-id"]
    status, told = stream_client.ask(node, "GET", f"/v1/cluster/explain/{name}")
    assert status == 200, told
    (seen,) = told["journeys"][0]["pictures"]
    assert (seen["modality"], seen["way"]) == ("video", "references")
    assert FILM_URL[40:80] not in json.dumps(told)
