"""The list of models as three kinds of clients ask for it at one path."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.http.ports.node import ModelView
from smg_node.http.routes.inference.model_shapes import (
    anthropic_page,
    entries_of,
    google_page,
)
from support.http.http_node import node
from support.http.raw_http import ask

GOOGLE = {"x-goog-api-key": "k"}
ANTHROPIC = {"anthropic-version": "2023-06-01", "x-api-key": "k"}
NAMES = ["m", "alias", "org/big-model"]
VIEWS = [ModelView(f"m{n}", n, "acme", (), 1, 1, 100) for n in range(7)]
ENTRIES = entries_of(VIEWS)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/models", GOOGLE),
        ("/v1/models", {**GOOGLE, **ANTHROPIC}),
        ("/v1beta/models", {}),
        ("/v1beta/models", ANTHROPIC),
        ("/v1alpha/models", GOOGLE),
    ],
)
async def test_googles_clients_get_googles_list(path: str, headers: dict[str, str]) -> None:
    async with node() as served:
        answer = (await ask(served.port, "GET", path, headers=headers)).json()
    assert list(answer) == ["models"]
    assert [model["name"] for model in answer["models"]] == [f"models/{name}" for name in NAMES]
    assert answer["models"][0] == {
        "name": "models/m",
        "version": "m",
        "displayName": "m",
        "inputTokenLimit": 4096,
        "outputTokenLimit": 4096,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }
    assert "inputTokenLimit" not in answer["models"][2]


async def test_anthropics_clients_get_anthropics_list() -> None:
    async with node() as served:
        answer = (await ask(served.port, "GET", "/v1/models", headers=ANTHROPIC)).json()
    assert [model["id"] for model in answer["data"]] == NAMES
    assert (answer["has_more"], answer["first_id"], answer["last_id"]) == (False, "m", NAMES[-1])
    assert answer["data"][0] == {
        "type": "model",
        "id": "m",
        "display_name": "m",
        "created_at": "1970-01-01T00:00:07Z",
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": 4096,
        "max_tokens": 4096,
        "capabilities": None,
    }


async def test_all_others_get_openais_list_whatever_they_ask_for() -> None:
    async with node() as served:
        answer = (await ask(served.port, "GET", "/v1/models?limit=x&pageSize=1")).json()
    assert (answer["object"], [model["id"] for model in answer["data"]]) == ("list", NAMES)


@pytest.mark.parametrize("name", NAMES)
async def test_one_model_has_the_shape_of_its_entry(name: str) -> None:
    async with node() as served:
        for headers, key in ((GOOGLE, "models"), (ANTHROPIC, "data"), ({}, "data")):
            listed = (await ask(served.port, "GET", "/v1/models", headers=headers)).json()[key]
            one = await ask(served.port, "GET", f"/v1/models/{name}", headers=headers)
            assert one.json() == listed[NAMES.index(name)]
        google = await ask(served.port, "GET", f"/v1beta/models/{name}")
        assert google.json()["name"] == f"models/{name}"


async def test_a_model_that_is_not_there_is_told_in_the_clients_own_envelope() -> None:
    async with node() as served:
        plain = await ask(served.port, "GET", "/v1/models/x")
        google = [
            await ask(served.port, "GET", path, headers=headers)
            for path, headers in (("/v1/models/x", GOOGLE), ("/v1beta/models/x", {}))
        ]
    assert (plain.status, plain.error()["code"]) == (404, "model_not_found")
    for each in google:
        assert (each.status, each.error()["code"], each.error()["status"]) == (
            404,
            404,
            "NOT_FOUND",
        )


async def test_a_key_that_is_wanted_is_missed_in_the_clients_own_envelope() -> None:
    async with node(data_access="closed") as served:
        google = await ask(served.port, "GET", "/v1/models", headers=GOOGLE)
        plain = await ask(served.port, "GET", "/v1/models")
    assert (google.status, google.error()["status"]) == (401, "UNAUTHENTICATED")
    assert (plain.status, plain.error()["code"]) == (401, "invalid_api_key")


# ── Pages ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 50])
def test_googles_pages_are_the_list_in_pieces(size: int) -> None:
    found: list[str] = []
    query = {"pageSize": str(size)}
    for _ in range(len(ENTRIES) + 1):
        page = google_page(ENTRIES, query)
        assert len(page["models"]) <= size
        found += [model["displayName"] for model in page["models"]]
        if "nextPageToken" not in page:
            break
        query = {**query, "pageToken": page["nextPageToken"]}
    assert found == [view.id for view in VIEWS]


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8])
def test_anthropics_pages_are_the_list_in_pieces_in_both_directions(size: int) -> None:
    for way, cursor in (("after_id", "last_id"), ("before_id", "first_id")):
        query: dict[str, str] = {"limit": str(size)}
        found: list[list[str]] = []
        if way == "before_id":
            found.append([VIEWS[-1].id])
            query["before_id"] = VIEWS[-1].id
        for _ in range(len(ENTRIES) + 1):
            page = anthropic_page(ENTRIES, query)
            assert len(page["data"]) <= size
            found.append([model["id"] for model in page["data"]])
            if not page["has_more"]:
                break
            query = {"limit": str(size), way: page[cursor]}
        ordered = found if way == "after_id" else reversed(found)
        assert [name for names in ordered for name in names] == [view.id for view in VIEWS]


def test_an_empty_list_is_a_page() -> None:
    assert google_page([], {}) == {"models": []}
    assert anthropic_page([], {}) == {
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }


def test_a_page_after_the_last_model_is_empty() -> None:
    page = anthropic_page(ENTRIES, {"after_id": "m6"})
    assert (page["data"], page["has_more"], page["last_id"]) == ([], False, None)
    first = anthropic_page(ENTRIES, {"before_id": "m0"})
    assert (first["data"], first["has_more"], first["first_id"]) == ([], False, None)


def test_sizes_that_nobody_gives_are_those_of_the_apis() -> None:
    many = entries_of([ModelView(f"m{n}", 0, "acme", (), 1, 1, 1) for n in range(1_100)])
    for query, count in (({}, 50), ({"pageSize": "0"}, 50), ({"pageSize": "99999"}, 1_000)):
        assert len(google_page(many, query)["models"]) == count
    assert len(anthropic_page(many, {})["data"]) == 20
    assert len(anthropic_page(many, {"limit": "1000"})["data"]) == 1_000


@pytest.mark.parametrize(
    ("page", "query", "where"),
    [
        (google_page, {"pageSize": "-1"}, "pageSize"),
        (google_page, {"pageSize": "x"}, "pageSize"),
        (google_page, {"pageSize": ""}, "pageSize"),
        (google_page, {"pageSize": "²"}, "pageSize"),
        (google_page, {"pageSize": "9" * 400}, "pageSize"),
        (google_page, {"pageToken": "!"}, "pageToken"),
        (google_page, {"pageToken": "/w=="}, "pageToken"),
        (google_page, {"pageToken": "_w=="}, "pageToken"),
        (google_page, {"pageToken": "bm9uZQ=="}, "pageToken"),
        (google_page, {"pageToken": "é"}, "pageToken"),
        (anthropic_page, {"limit": "0"}, "limit"),
        (anthropic_page, {"limit": "1.5"}, "limit"),
        (anthropic_page, {"after_id": "none"}, "after_id"),
        (anthropic_page, {"before_id": "none"}, "before_id"),
        (anthropic_page, {"after_id": "m1", "before_id": "m2"}, "before_id"),
    ],
)
def test_a_page_that_cannot_be_is_refused(page: Any, query: dict[str, str], where: str) -> None:
    with pytest.raises(SmgError) as caught:
        page(ENTRIES, query)
    assert (caught.value.status, caught.value.where) == (400, where)
