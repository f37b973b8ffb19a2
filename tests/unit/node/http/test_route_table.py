import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.http.openapi.document import document
from smg_node.http.openapi.examples import EXAMPLES
from smg_node.http.openapi.schemas import SCHEMAS
from smg_node.http.route_table import METRICS_ROUTES, ROUTES, Route, Router, WrongMethodError
from support.tools.example_counts import example_count

ROUTER = Router(ROUTES)


def test_an_exact_path_is_found() -> None:
    assert ROUTER.find("POST", "/v1/chat/completions").route.action == "chat"


def test_head_is_answered_by_a_get_route() -> None:
    assert ROUTER.find("HEAD", "/health").route.action == "health"


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/models/m", "m"),
        ("/v1/models/org/big/model", "org/big/model"),
        ("/v1/models/org%2Fbig", "org/big"),
        ("/v1/models/a%20b", "a b"),
        ("/v1/models/", None),
    ],
)
def test_a_model_id_may_contain_slashes(path: str, model: str | None) -> None:
    if model is None:
        with pytest.raises(SmgError, match="nothing at"):
            ROUTER.find("GET", path)
    else:
        assert ROUTER.find("GET", path).values == {"id": model}


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("GET", "/workers/w%2F2", "worker"),
        ("POST", "/workers/w%2F2/drain", "drain_worker"),
        ("DELETE", "/workers/w%2F2", "remove_worker"),
    ],
)
def test_a_worker_id_is_one_segment_that_may_hide_a_slash(
    method: str, path: str, action: str
) -> None:
    found = ROUTER.find(method, path)
    assert found.route.action == action
    assert found.values == {"id": "w/2"}


@pytest.mark.parametrize(
    "path", ["/workers/", "/workers/a/b", "/workers/a/drain/x", "/v2", "", "//"]
)
def test_a_path_nobody_serves_is_unknown(path: str) -> None:
    with pytest.raises(SmgError) as caught:
        ROUTER.find("GET", path)
    assert (caught.value.status, caught.value.code) == (404, "unknown_url")


def test_a_wrong_method_is_told_the_right_ones() -> None:
    with pytest.raises(WrongMethodError) as caught:
        ROUTER.find("POST", "/workers/w-1")
    assert caught.value.allow == "DELETE, GET, PATCH, PUT, HEAD, OPTIONS"
    assert caught.value.status == 405


def test_a_path_written_with_needless_escapes_is_the_same_path() -> None:
    assert ROUTER.find("GET", "/%68ealth").route.action == "health"


@settings(max_examples=example_count(200))
@given(st.text(max_size=8), st.text(max_size=40))
def test_any_method_and_path_find_a_route_or_a_refusal(method: str, path: str) -> None:
    status = 200
    try:
        assert ROUTER.find(method, path).route in ROUTES
    except SmgError as error:
        status = error.status
    assert status in (200, 404, 405)


def test_no_route_stands_in_the_table_twice() -> None:
    for table in (ROUTES, METRICS_ROUTES):
        keys = [(route.method, route.path) for route in table]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("method", "path", "action", "key"),
    [
        ("GET", "/v1/cluster/settings/routing.policy", "setting", "routing.policy"),
        (
            "PUT",
            "/v1/cluster/settings/models/org/a.b/policy",
            "change_setting",
            "models/org/a.b/policy",
        ),
        (
            "DELETE",
            "/v1/cluster/settings/models%2Fm%2Faliases",
            "unset_setting",
            "models/m/aliases",
        ),
        ("GET", "/v1/cluster/settings/diff", "settings_difference", None),
        ("GET", "/v1/cluster/settings/history", "settings_history", None),
        ("POST", "/v1/cluster/settings/validate", "validate_settings", None),
        ("POST", "/v1/cluster/settings/rollback", "rollback_settings", None),
    ],
)
def test_the_key_of_a_setting_may_contain_slashes(
    method: str, path: str, action: str, key: str | None
) -> None:
    found = ROUTER.find(method, path)
    assert (found.route.action, found.values.get("key")) == (action, key)


def test_every_example_is_of_a_shape_that_exists_and_has_what_it_must() -> None:
    for name, example in EXAMPLES.items():
        required = SCHEMAS[name].get("required", ())
        assert set(required) <= set(example), name
        assert set(example) <= set(SCHEMAS[name]["properties"]), name


def test_a_required_header_is_in_the_document() -> None:
    spec = document(ROUTES, version="1")
    keyed = spec["paths"]["/v1/responses"]["post"]["parameters"]
    assert keyed == [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": "^[ -~]{1,128}$"},
        }
    ]
    parameters = spec["paths"]["/v1/cluster/settings/{key}"]["put"]["parameters"]
    (version,) = [each for each in parameters if each["in"] == "header"]
    assert (version["name"], version["required"]) == ("If-Match", True)
    assert re.search(version["schema"]["pattern"], '"115964116992"')
    assert re.search(version["schema"]["pattern"], "yesterday") is None
    example = spec["paths"]["/workers"]["post"]["requestBody"]["content"]["application/json"]
    assert example["example"]["url"].startswith("grpc://")


def test_only_probes_and_descriptions_are_public() -> None:
    public = {route.path for route in ROUTES if route.access == "public"}
    known = "/.well-known/oauth-protected-resource"
    assert public == {
        *("/", "/version", "/openapi.json", "/liveness", "/readiness", "/health"),
        *(known, f"{known}/{{path+}}"),
    }


def test_every_route_is_in_the_document_with_shapes_that_exist() -> None:
    # Through JSON, because that is what a client gets.
    spec = json.loads(json.dumps(document(ROUTES, version="1.2.3")))
    assert spec["openapi"].startswith("3.1.")
    assert spec["info"]["version"] == "1.2.3"
    schemas = spec["components"]["schemas"]
    for route in ROUTES:
        operation = spec["paths"][route.path.replace("+}", "}")][route.method.lower()]
        _check_operation(route, operation)
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(spec)))
    assert referred == set(schemas), "a schema is missing, or nobody refers to it"
    ids = [op["operationId"] for path in spec["paths"].values() for op in path.values()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in ids)


def _check_operation(route: Route, operation: dict[str, object]) -> None:
    assert operation["summary"]
    responses = operation["responses"]
    assert isinstance(responses, dict)
    unwell = {"503"} if route.path in ("/readiness", "/health", "/health_generate") else set()
    assert set(responses) == {str(route.status), "default"} | unwell
    assert ("requestBody" in operation) == bool(route.body)
    assert (operation["security"] == []) == (route.access == "public")
    parameters = operation.get("parameters", [])
    assert isinstance(parameters, list)
    in_path = {p["name"] for p in parameters if p["in"] == "path"}
    assert in_path == set(re.findall(r"\{(\w+)\+?\}", route.path))
    assert all(p["required"] for p in parameters if p["in"] == "path")
