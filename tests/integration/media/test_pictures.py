"""Pictures through a real node: official clients in front, simulated engines that check every tensor behind."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import anthropic
import openai
import pytest

from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.media.origin import Origin, origin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

VISION = ("--vision", "qwen3_vl", "--script", "pictures", "--model", "eyes")


A, B = jpeg(320, 200), jpeg(200, 333, shade=40)
LONG = B + bytes(4 << 20)
"""A file whose size is known by its beginning."""
TOKENS = {A: 77, B: 77}
"""By the size rule of Qwen3-VL, which enlarges both to 65,536 pixels or more: 11 x 7 and 7 x 11 blocks of 32 pixels."""


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with running_simulated(tmp_path_factory.mktemp("engines"), *VISION) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def pictures() -> Iterator[Origin]:
    with origin({"/a.jpg": A, "/b.jpg": B, "/long.jpg": LONG}) as found:
        yield found


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, engines: Simulated, pictures: Origin
) -> Iterator[RunningNode]:
    flags = ("--media.fetch-private-hosts", pictures.host)
    folder = tmp_path_factory.mktemp("node")
    with running_node(folder, workers=[f"grpc://{engines.address}"], flags=flags) as running:
        yield running


def chat_turn(*content: str | dict[str, Any]) -> list[Any]:
    parts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return [{"role": "user", "content": parts}]


def openai_client(node: RunningNode) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


def anthropic_client(node: RunningNode) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=node.url, api_key="none", max_retries=0, timeout=60)


def chat(node: RunningNode, *content: str | dict[str, Any], **more: Any) -> Any:
    return openai_client(node).chat.completions.create(
        model="eyes", messages=chat_turn(*content), **more
    )


def text_of(answer: Any) -> str:
    return answer.choices[0].message.content or ""


@pytest.fixture(params=["data", "url"])
def urls(request: pytest.FixtureRequest, pictures: Origin) -> tuple[str, str]:
    """The two pictures inside of the request, and by URL."""
    if request.param == "data":
        return data_url(A), data_url(B)
    return pictures.url("/a.jpg"), pictures.url("/b.jpg")


def test_chat_by_the_official_client(node: RunningNode, urls: tuple[str, str]) -> None:
    first, both = (
        chat(node, "What is it?", *[picture_part(url) for url in sent]) for sent in (urls[:1], urls)
    )
    assert text_of(first).startswith("I see 1: ")
    assert text_of(both).startswith("I see 2: ")
    digest = text_of(first).removeprefix("I see 1: ").rstrip(".")
    assert digest in text_of(both), "the same picture, wherever it is from"
    assert both.usage.prompt_tokens_details.image_tokens == TOKENS[A] + TOKENS[B]
    assert both.usage.prompt_tokens - first.usage.prompt_tokens == TOKENS[B] + 2


def test_a_streamed_chat_says_the_same(node: RunningNode, urls: tuple[str, str]) -> None:
    whole = chat(node, "What is it?", picture_part(urls[0]))
    stream = chat(
        node,
        "What is it?",
        picture_part(urls[0]),
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    said = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert said == text_of(whole)
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_by_the_official_client(
    node: RunningNode, urls: tuple[str, str], streamed: bool
) -> None:
    content: Any = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": urls[0], "detail": "high"},
    ]
    asked: Any = {"model": "eyes", "input": [{"role": "user", "content": content}], "store": False}
    client = openai_client(node)
    if streamed:
        said = "".join(
            event.delta
            for event in client.responses.create(**asked, stream=True)
            if event.type == "response.output_text.delta"
        )
    else:
        said = client.responses.create(**asked).output_text
    assert said.startswith("I see 1: ")


@pytest.mark.parametrize("streamed", [False, True])
def test_messages_by_the_official_client(
    node: RunningNode, pictures: Origin, streamed: bool
) -> None:
    sources: list[Any] = [
        {"type": "base64", "media_type": "image/jpeg", "data": base64.b64encode(A).decode()},
        {"type": "url", "url": pictures.url("/a.jpg")},
    ]
    client, said = anthropic_client(node), []
    for source in sources:
        asked: Any = {
            "model": "eyes",
            "max_tokens": 100,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "source": source},
                        {"type": "text", "text": "What is it?"},
                    ],
                }
            ],
        }
        if streamed:
            with client.messages.stream(**asked) as stream:
                said.append("".join(stream.text_stream))
        else:
            (block,) = client.messages.create(**asked).content
            said.append(block.text)
    assert said[0].startswith("I see 1: ")
    assert said[0] == said[1]


def test_pictures_of_earlier_turns_and_of_results_are_seen(node: RunningNode) -> None:
    turns: Any = [
        *chat_turn("Look", picture_part(data_url(A))),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "see", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [picture_part(data_url(B))]},
    ]
    answer = openai_client(node).chat.completions.create(model="eyes", messages=turns)
    assert text_of(answer).startswith("I see 2: ")


# ── What is refused ──────────────────────────────────────────────────────────


def refused(node: RunningNode, *content: str | dict[str, Any], **more: Any) -> tuple[int, Any]:
    with pytest.raises(openai.APIStatusError) as caught:
        chat(node, *content, **more)
    body: Any = caught.value.body
    return caught.value.status_code, body


def test_a_placeholder_that_a_user_types_is_never_the_place_of_a_picture(
    node: RunningNode, pictures: Origin
) -> None:
    before = len(pictures.asked)
    status, body = refused(node, "Say <|image_pad|>", picture_part(pictures.url("/a.jpg")))
    assert status == 400
    assert "<|image_pad|>" in body["message"] or "placeholder" in body["message"]
    assert len(pictures.asked) == before, "and nothing was fetched"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (data_url(A[:-40]), "invalid_image"),
        (data_url(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "invalid_image"),
        ("data:image/png;base64,%%%", "invalid_image"),
        ("http://127.0.0.1:1/a.png", "media_forbidden"),
        ("http://169.254.169.254/latest", "media_forbidden"),
        ("file:///etc/passwd", "invalid_value"),
    ],
)
def test_what_is_no_picture_is_refused_with_its_path(
    node: RunningNode, url: str, code: str
) -> None:
    status, body = refused(node, "Look", picture_part(url))
    assert (status, body["code"]) == (400, code)
    assert body["param"].startswith("messages[0].content[1]")


def test_an_origin_without_the_picture_is_named_by_the_part(
    node: RunningNode, pictures: Origin
) -> None:
    status, body = refused(node, "Look", picture_part(pictures.url("/none.jpg")))
    assert (status, body["code"]) == (400, "media_unavailable")
    assert "localhost" not in body["message"]


# ── What the node says of it ─────────────────────────────────────────────────


def test_the_same_picture_again_is_not_worked_on_again(node: RunningNode) -> None:
    picture = jpeg(640, 480, shade=99)
    hits, misses = (
        partial(node.metric, "smg_node_media_cache_total", outcome=outcome)
        for outcome in ("hit", "miss")
    )
    before = hits(), misses()
    said = {text_of(chat(node, "Look", picture_part(data_url(picture)))) for _ in range(3)}
    assert len(said) == 1
    assert (hits() - before[0], misses() - before[1]) == (2, 1)
    smaller = text_of(chat(node, "Look", picture_part(data_url(picture), detail="low")))
    assert smaller not in said, "another size is another picture"
    assert misses() - before[1] == 2


def count(node: RunningNode, *more: dict[str, Any]) -> int:
    """Return how many tokens a prompt with these pictures has."""
    body = json.dumps({"model": "eyes", "messages": chat_turn("Look", *more)}).encode()
    asked = urllib.request.Request(
        f"{node.url}/v1/tokenize", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return int(json.loads(answer.read())["count"])


def test_a_client_can_ask_how_many_tokens_pictures_are(node: RunningNode) -> None:
    both = count(node, picture_part(data_url(A)), picture_part(data_url(B)))
    assert both - count(node) == TOKENS[A] + TOKENS[B] + 4


def test_of_a_picture_that_is_only_counted_no_more_is_fetched_than_says_its_size(
    node: RunningNode, pictures: Origin
) -> None:
    fetched = partial(node.metric, "smg_node_media_bytes_total", source="url")
    before = fetched()
    assert count(node, picture_part(pictures.url("/long.jpg"))) - count(node) == TOKENS[B] + 2
    assert fetched() - before < len(LONG) / 4
    client = anthropic_client(node)
    source: Any = {"type": "url", "url": pictures.url("/long.jpg")}
    turns: Any = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    told = client.messages.count_tokens(model="eyes", messages=turns)
    assert told.input_tokens > TOKENS[B]
    assert fetched() - before < len(LONG) / 2


def test_explain_tells_of_each_picture(node: RunningNode) -> None:
    raw = openai_client(node).chat.completions.with_raw_response.create(
        model="eyes", messages=chat_turn("Look", picture_part(data_url(A)))
    )
    name = raw.headers["x-request-id"]
    with urllib.request.urlopen(f"{node.url}/v1/cluster/explain/{name}", timeout=10) as answer:
        told = json.loads(answer.read())
    (seen,) = told["journeys"][0]["pictures"]
    assert (seen["family"], seen["width"], seen["height"]) == ("qwen3_vl", 320, 200)
    assert (seen["tokens"], seen["way"]) == (TOKENS[A], "tensors")
    assert seen["maker"] in ("node", "kept")
    assert seen["transport"] in ("message", "shared memory")
    values = {each["name"]: each["origin"] for each in told["journeys"][0]["processor"]}
    assert values["patch_size"] == "preprocessor_config.json"


def test_a_model_that_sees_says_by_which_numbers(node: RunningNode) -> None:
    with urllib.request.urlopen(f"{node.url}/v1/models/eyes", timeout=10) as answer:
        own = json.loads(answer.read())["x_smg"]
    assert own["modalities"] == ["text", "image"]
    (rules,) = own["pictures"]
    assert (rules["family"], rules["workers"], rules["why_not"]) == ("qwen3_vl", 1, "")
    assert {"name": "patch_size", "value": 16, "origin": "preprocessor_config.json"} in rules[
        "values"
    ]


def test_metrics_tell_of_pictures(node: RunningNode, pictures: Origin) -> None:
    chat(node, "Look", picture_part(pictures.url("/b.jpg")))
    assert node.metric("smg_node_media_items_total", way="tensors") >= 1
    assert node.metric("smg_node_media_bytes_total", source="url") >= len(B)
    for stage in ("fetch", "plan", "decode", "patches", "finish"):
        assert node.metric("smg_node_media_seconds_count", stage=stage) >= 1, stage
    assert node.metric("smg_node_media_inflight_bytes") == 0
    assert node.metric("smg_node_media_under_way") == 0
