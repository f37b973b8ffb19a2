import json

from smg_chaos.bench.figures.process_accounting import ProcessMemory
from smg_chaos.bench.process_memory import Found, document_request, table

MB = 1024 * 1024


def processes(*own: int) -> list[ProcessMemory]:
    return [
        ProcessMemory(pid, rss=200 * MB, pss=(size + 10) * MB, own=size * MB)
        for pid, size in enumerate(own)
    ]


def test_the_table_tells_the_total_and_what_an_added_process_takes() -> None:
    found = [
        Found("smg-node", 1, processes(20, 30, 150)),
        Found("smg-node", 3, processes(20, 30, 150, 150, 148)),
        Found("smg", 0, processes(130)),
    ]
    assert table(found).splitlines() == [
        "gateway   processes   PSS MB   added  own MB of each",
        "smg-node          1    230.0          20 30 150",
        "smg-node          3    548.0   159.0  20 30 150 150 148",
        "smg                    140.0          130",
    ]


def test_a_table_of_another_gateway_alone_has_nothing_to_compare_it_with() -> None:
    assert table([Found("smg", 0, processes(1))]).endswith(
        "smg                     11.0          1"
    )


def test_a_request_about_a_document_is_json_whatever_the_document_says() -> None:
    escaped = json.dumps('a "quoted"\nline').encode()[1:-1]
    body = json.loads(document_request("m", 7, escaped))
    assert body["messages"] == [{"role": "user", "content": '0000000007. a "quoted"\nline'}]
    assert (body["model"], body["max_tokens"]) == ("m", 2)
