"""A stand-in as a machine: order of checks, limits, cache, money, faults, and garbage."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_chaos.vendor.hostings.hosting import HOSTINGS
from support.providers.stand_ins import KEY, Desk
from support.providers.vendor_requests import PLACES

PATH = "/v1/chat/completions"
MODEL = "gpt-4.1-mini"


def chat(text: str = "hello", **fields: Any) -> Any:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def test_there_is_a_request_for_every_hosting() -> None:
    assert PLACES.keys() == HOSTINGS.keys()


@pytest.mark.parametrize("kind", PLACES)
def test_the_same_question_has_the_same_answer(kind: str) -> None:
    path, body = PLACES[kind]
    assert Desk(kind).ask(path, body).body == Desk(kind).ask(path, body).body


@pytest.mark.parametrize("kind", PLACES)
def test_a_path_that_is_not_there_is_told_so_before_the_key_is_looked_at(kind: str) -> None:
    nothing = dict.fromkeys(("authorization", "x-api-key", "api-key", "x-goog-api-key"), "")
    assert Desk(kind).ask("/nowhere", {}, nothing).status == 404


@pytest.mark.parametrize(
    ("kind", "status"),
    [("openai", 404), ("anthropic", 404), ("azure", 404), ("xai", 404), ("mantle", 404)],
)
def test_a_model_that_is_not_there_is_told_so(kind: str, status: int) -> None:
    path, body = PLACES[kind]
    assert Desk(kind).ask(path, {**body, "model": "nothing"}).status == status
    assert Desk(kind, models=("*",)).ask(path, {**body, "model": "nothing"}).status == 200


def test_a_dated_deployment_needs_its_version() -> None:
    path, body = PLACES["azure_dated"]
    assert Desk("azure_dated").refused(path.partition("?")[0], body)[0] == 404


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("openai", "This model's maximum context length is 5 tokens"),
        ("anthropic", "prompt is too long: "),
        ("vertex", "exceeds the maximum number of tokens allowed (5)"),
        ("bedrock", "Input is too long for requested model."),
        ("vertex_anthropic", "prompt is too long: "),
    ],
)
def test_a_prompt_that_is_too_long_is_told_in_the_vendors_words(kind: str, words: str) -> None:
    path, body = PLACES[kind]
    reply = Desk(kind, context=5).ask(path, body)
    assert reply.status == 400
    assert words in reply.body.decode()


def test_a_full_bucket_refuses_and_time_opens_it() -> None:
    desk = Desk("openai", requests_per_minute=2)
    assert [desk.ask(PATH, chat()).status for _ in range(3)] == [200, 200, 429]
    desk.now_s = 30.0
    reply = desk.ask(PATH, chat())
    assert (reply.status, reply.headers["x-ratelimit-remaining-requests"]) == (200, "0")
    other = {"authorization": "Bearer sk-2"}
    desk.vendor.credentials.add("sk-2")
    assert desk.ask(PATH, chat(), other).status == 200


def test_tokens_that_were_reserved_and_not_used_come_back() -> None:
    desk = Desk("openai", tokens_per_minute=1_000)
    first = desk.ask(PATH, chat(max_tokens=900))
    assert first.headers["x-ratelimit-remaining-tokens"] == "88"
    assert desk.ask(PATH, chat(max_tokens=900)).status == 429
    desk.settle(first)
    second = desk.ask(PATH, chat(max_tokens=900))
    # The prompt has 12 tokens and the answer has 4: 16 were used of the first.
    assert second.headers["x-ratelimit-remaining-tokens"] == str(1_000 - 16 - 912)


def test_reads_of_the_cache_do_not_count_at_anthropic() -> None:
    desk = Desk("anthropic", tokens_per_minute=10_000, cache_min_tokens=100)
    system = [{"type": "text", "text": "x" * 4_000, "cache_control": {"type": "ephemeral"}}]
    body = {**PLACES["anthropic"][1], "system": system}
    left = []
    for _ in range(3):
        desk.settle(desk.ask("/v1/messages", body))
        buckets = desk.vendor.rates.of(KEY, 0.0)
        assert buckets.tokens is not None
        left.append(buckets.tokens.remaining(0.0))
    assert left[0] - left[1] == left[1] - left[2]
    assert 10_000 - left[0] > 1_000 > 100 > left[0] - left[1]


def test_openai_caches_long_prompts_by_itself_and_by_the_clients_key() -> None:
    desk = Desk("openai")
    long = chat("word " * 2_000)

    def cached(**fields: Any) -> int:
        usage = desk.told(PATH, {**long, **fields})["usage"]
        count = usage["prompt_tokens_details"]["cached_tokens"]
        assert isinstance(count, int)
        return count

    assert cached() == 0
    assert cached() > 2_000
    assert cached(prompt_cache_key="another machine") == 0
    desk.now_s = 301.0
    assert cached() == 0
    assert Desk("openai", cache=False).told(PATH, long)["usage"]["prompt_tokens"] > 2_000


def test_new_models_of_openai_tell_what_was_written() -> None:
    desk = Desk("openai")
    body = {**chat("word " * 2_000), "model": "gpt-5.6"}
    first, second = (desk.told(PATH, body)["usage"]["prompt_tokens_details"] for _ in range(2))
    assert (first["cached_tokens"], second["cache_write_tokens"]) == (0, 0)
    assert first["cache_write_tokens"] == second["cached_tokens"] > 2_000


def test_the_bill_is_exact() -> None:
    desk = Desk("openai", prices=(f"{MODEL}=1000000,100000,0,0,10000000",))
    for _ in range(3):
        desk.told(PATH, chat())
    # 12 tokens of a prompt at a micro-dollar and 4 of an answer at ten.
    told = desk.vendor.bill.told()
    assert (told["micro_dollars"], told["pico_dollars"]) == (3 * 52, 3 * 52_000_000)
    cut = desk.ask(PATH, chat())
    assert cut.charge is not None
    desk.vendor.settle(cut.charge, 1, desk.times, whole=False)
    told = desk.vendor.bill.told()
    assert (told["micro_dollars"], told["rows"][0]["cut"]) == (4 * 52 - 30, 1)


def test_requests_are_kept_as_they_came() -> None:
    desk = Desk("openai", kept_requests=2)
    for path in ("/v1/a%2Fb", PATH, f"{PATH}?x=%20y"):
        desk.ask(path, b'{"model":  1}', {"X": "y"})
    first, second = desk.vendor.log.told(5)
    assert (first["number"], second["number"], desk.vendor.log.count) == (2, 3, 3)
    assert (second["path"], second["query"]) == (PATH, "x=%20y")
    assert second["body"] == "eyJtb2RlbCI6ICAxfQ=="
    assert desk.vendor.log.told(1) == [second]
    assert desk.vendor.log.told(0) == []


@pytest.mark.parametrize(
    ("kind", "fault", "status", "header"),
    [
        ("openai", "status:reason=rate,retry_after=1.5", 429, ("retry-after-ms", "1500")),
        ("anthropic", "status:reason=overloaded,retry_after=2", 529, ("retry-after", "2")),
        ("azure", "status:reason=rate,retry_after=2", 429, ("retry-after-ms", "2000")),
        ("bedrock", "status:reason=rate", 429, ("x-amzn-errortype", "ThrottlingException:")),
        ("openai", "status:reason=server,code=520", 520, ("content-type", "application/json")),
        ("gemini", "html", 200, ("content-type", "text/html; charset=utf-8")),
    ],
)
def test_a_fault_is_told_as_the_vendor_tells_it(
    kind: str, fault: str, status: int, header: tuple[str, str]
) -> None:
    path, body = PLACES[kind]
    reply = Desk(kind, faults=(fault,)).ask(path, body)
    assert (reply.status, reply.headers[header[0]]) == (status, header[1])


def test_faults_of_a_key_and_a_model_leave_others_alone() -> None:
    desk = Desk("openai", faults=("status:key=sk-2", "status:model=gpt-5.6,reason=server"))
    desk.vendor.credentials.add("sk-2")
    other = {"authorization": "Bearer sk-2"}
    assert desk.ask(PATH, chat()).status == 200
    assert desk.ask(PATH, chat(), other).status == 503
    assert desk.ask(PATH, {**chat(), "model": "gpt-5.6"}).status == 500


@pytest.mark.parametrize("kind", PLACES)
def test_an_answer_names_the_account_and_the_request(kind: str) -> None:
    path, body = PLACES[kind]
    headers = Desk(kind).ask(path, body).headers
    own = {
        "aws": "x-amzn-requestid",
        "azure": "apim-request-id",
        "anthropic": "anthropic-organization-id",
        "google": "server-timing",
    }
    hosting = HOSTINGS[kind]
    family = "azure" if hosting.gate == "azure" else hosting.family
    wanted = "x-amzn-usage-reservation-quota" if kind == "mantle" else own.get(family)
    assert (wanted or "x-request-id") in headers


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "user", "x", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "model",
                    "messages",
                    "role",
                    "content",
                    "type",
                    "text",
                    "tools",
                    "function",
                    "name",
                    "parameters",
                    "tool_choice",
                    "contents",
                    "parts",
                    "functionCall",
                    "functionResponse",
                    "input",
                    "system",
                    "thinking",
                    "tool_calls",
                    "id",
                    "arguments",
                    "toolConfig",
                    "tool_use_id",
                    "generationConfig",
                    "reasoningContent",
                    "toolUse",
                    "toolResult",
                    "output_config",
                    "format",
                    "schema",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(JSON, st.sampled_from(sorted(PLACES)))
def test_whatever_stands_in_a_body_is_answered_or_refused(value: Any, kind: str) -> None:
    path, body = PLACES[kind]
    made = value if not isinstance(value, dict) else {**body, **value}
    reply = Desk(kind, models=("*",)).ask(path, made)
    assert reply.status in (200, 400, 404, 422)
    if not reply.frames:
        msgspec.json.decode(reply.body)


@given(st.binary(max_size=60), st.sampled_from(sorted(PLACES)))
def test_bytes_that_are_no_json_are_refused(raw: bytes, kind: str) -> None:
    path, _ = PLACES[kind]
    assert Desk(kind).ask(path, raw).status in (400, 404)


def test_a_cache_is_the_accounts_or_each_keys() -> None:
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 8,
        "cache_control": {"type": "ephemeral"},
        "messages": [{"role": "user", "content": "x" * 9_000}],
    }
    for scope, shared in (("account", True), ("key", False)):
        desk = Desk("anthropic", cache_scope=scope, keys=(KEY, "sk-other"))
        first = desk.told("/v1/messages", body)["usage"]
        other = desk.told("/v1/messages", body, headers={"x-api-key": "sk-other"})["usage"]
        again = desk.told("/v1/messages", body)["usage"]
        assert first["cache_creation_input_tokens"] == again["cache_read_input_tokens"] > 0
        assert (other["cache_read_input_tokens"] > 0) is shared


def test_another_scope_of_caches_is_refused() -> None:
    with pytest.raises(ValueError, match="cache scope"):
        Desk("anthropic", cache_scope="keys")
