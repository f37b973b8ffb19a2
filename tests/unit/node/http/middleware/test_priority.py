"""A client says what kind of work its request is, and can claim no more than it may."""

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.http.middleware.priority import CLASS_HEADER, HEADER, priority_of
from support.http.http_node import chat, node
from support.http.raw_http import ask


@pytest.mark.parametrize(
    ("claimed", "most", "given"),
    [
        (None, "system", "default"),
        ("", "system", "default"),
        ("system", "system", "system"),
        ("system", "interactive", "interactive"),
        ("interactive", "interactive", "interactive"),
        (" Bulk ", "interactive", "bulk"),
        ("interactive", "bulk", "bulk"),
        ("default", "system", "default"),
    ],
)
def test_who_claims_too_much_gets_the_most_there_is(
    claimed: str | None, most: Priority, given: Priority
) -> None:
    headers = {} if claimed is None else {HEADER: claimed}
    assert priority_of(headers, most) == given


@pytest.mark.parametrize(
    ("headers", "most", "given"),
    [
        ({CLASS_HEADER: "main"}, "interactive", "interactive"),
        ({CLASS_HEADER: "main"}, "default", "default"),
        ({CLASS_HEADER: "side_reply"}, "system", "interactive"),
        ({CLASS_HEADER: "subagent"}, "system", "default"),
        ({CLASS_HEADER: "compaction"}, "system", "default"),
        ({CLASS_HEADER: "auxiliary"}, "system", "bulk"),
        ({CLASS_HEADER: "something new"}, "system", "default"),
        ({CLASS_HEADER: "subagent"}, "bulk", "bulk"),
        ({CLASS_HEADER: "auxiliary", HEADER: "interactive"}, "system", "interactive"),
        ({CLASS_HEADER: "main", HEADER: " "}, "system", "interactive"),
    ],
)
def test_without_a_claim_the_clients_word_for_its_request_counts(
    headers: dict[str, str], most: Priority, given: Priority
) -> None:
    assert priority_of(headers, most) == given


@pytest.mark.parametrize("claimed", ["urgent", "0", "x" * 5000])
def test_a_class_that_there_is_not_is_the_callers_mistake(claimed: str) -> None:
    with pytest.raises(SmgError) as refusal:
        priority_of({HEADER: claimed}, "system")
    assert refusal.value.kind is ErrorKind.INVALID_REQUEST
    assert refusal.value.where == HEADER
    assert all(word in refusal.value.message for word in PRIORITIES)
    assert len(refusal.value.message) < 200


async def test_the_class_reaches_the_run_no_higher_than_this_node_allows() -> None:
    async with node(claim_max="default") as served:
        for claimed in ("bulk", "system"):
            await ask(served.port, "POST", "/v1/chat/completions", chat(), {HEADER: claimed})
        refused = await ask(served.port, "POST", "/v1/chat/completions", chat(), {HEADER: "now"})
        given = [run.context.priority for run in served.generations.runs]
    assert given == ["bulk", "default"]
    assert refused.status == 400
    assert refused.error()["param"] == HEADER
