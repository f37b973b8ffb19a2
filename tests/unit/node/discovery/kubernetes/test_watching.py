"""List and watch: pages, lines, errors and time → views and what to do next."""

from random import Random

import pytest

import smg_node.discovery.kubernetes.watching as watching_module
from smg_node.core.cooperative_steps import whole
from smg_node.discovery.kubernetes.watching import (
    LINE_MAX_BYTES,
    LIST_MAX_BYTES,
    ListPage,
    ListWatch,
    OpenWatch,
    Wait,
)
from smg_node.discovery.sighting import View
from support.kubernetes.list_watches import (
    FIRST,
    NOW,
    READ,
    SECOND,
    listed,
    machine,
    shown,
    watching,
)
from support.kubernetes.pod_text import a_list, bookmark, event, expired, pod

# ── Lists ────────────────────────────────────────────────────────────────────


def test_it_begins_with_a_list_and_knows_nothing() -> None:
    one = machine()
    assert one.next_step(NOW) == ListPage("", NOW + 30_000, LIST_MAX_BYTES)
    assert one.view == View({})


def test_a_list_gives_a_view_as_of_its_beginning_and_a_version_to_watch_from() -> None:
    one = machine()
    one.next_step(NOW)
    whole(one.take_page(a_list(pod(), version="41"), NOW + 900))
    assert shown(one.view) == {FIRST: "ready"}
    assert one.view.whole_ms == NOW
    step = one.next_step(NOW + 900)
    assert isinstance(step, OpenWatch)
    assert step.version == "41"
    assert 300 <= step.timeout_s <= 600


def test_a_list_is_whole_only_with_all_its_pages() -> None:
    first, second = a_list(pod(), more="next"), a_list(pod("vllm-1", ip="10.1.0.2"))
    one = listed(first)
    assert one.view == View({})
    assert one.next_step(NOW + 5) == ListPage("next", NOW + 30_000, LIST_MAX_BYTES - len(first))
    whole(one.take_page(second, NOW + 10))
    assert shown(one.view) == {FIRST: "ready", SECOND: "ready"}
    assert one.view.whole_ms == NOW


def test_a_page_that_fails_throws_the_pages_before_it_away() -> None:
    one = watching(pod(), pod("vllm-1", ip="10.1.0.2"))
    one.tick(NOW + 90_000)
    one.next_step(NOW + 90_000)
    whole(one.take_page(a_list(pod(), more="next"), NOW + 90_001))
    one.failed("410: it expired", NOW + 90_002)
    assert shown(one.view) == {FIRST: "ready", SECOND: "ready"}
    assert isinstance(one.next_step(NOW + 90_002), Wait)
    step = one.next_step(NOW + 93_000)
    assert step == ListPage("", NOW + 123_000, LIST_MAX_BYTES)


def test_an_empty_list_is_an_answer() -> None:
    empty = b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":null}'
    one = listed(empty)
    assert one.view == View({}, whole_ms=NOW)


def test_a_list_takes_away_what_it_does_not_have_and_says_whose_end_was_told() -> None:
    one = watching(pod(), pod("vllm-1", ip="10.1.0.2", deleted=True))
    one.tick(NOW + 600_000)
    one.next_step(NOW + 600_000)
    whole(one.take_page(a_list(), NOW + 600_000))
    assert shown(one.view) == {}
    assert one.view.gone == {SECOND}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"metadata":{}}',
        b'{"metadata":{"resourceVersion":"1"}}',
        b'{"metadata":{"resourceVersion":"1"},"items":[1]}',
    ],
)
def test_what_is_no_list_is_counted_and_changes_nothing(text: bytes) -> None:
    one = machine()
    one.next_step(NOW)
    whole(one.take_page(text, NOW))
    assert one.counts.garbage == 1
    assert one.view.whole_ms == 0
    assert one.view.trouble.startswith(("what came is not", "a list without"))
    assert isinstance(one.next_step(NOW), Wait)


def test_a_large_page_is_read_in_steps() -> None:
    one = machine()
    one.next_step(NOW)
    pods = [pod(f"vllm-{at}", ip=f"10.1.1.{at}") for at in range(250)]
    steps = list(one.take_page(a_list(*pods), NOW))
    assert len(steps) == 5
    assert len(one.view.sightings) == 250


def test_more_objects_than_there_is_room_for_are_no_list_and_end_a_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching_module, "OBJECTS_MAX", 2)
    pods = [pod(f"vllm-{at}", ip=f"10.1.0.{at + 1}") for at in range(3)]
    one = watching(*pods[:2])
    one.feed(event("ADDED", pods[2]), NOW + 1)
    assert not one.is_watching
    assert one.view.trouble == "more than 2 objects are selected"
    one.next_step(NOW + 2_000)
    whole(one.take_page(a_list(*pods), NOW + 2_000))
    assert one.counts.garbage == 2
    assert one.view.whole_ms == NOW


# ── Watches ──────────────────────────────────────────────────────────────────


def test_each_change_comes_into_the_view() -> None:
    one = watching(pod())
    one.feed(event("ADDED", pod("vllm-1", ip="10.1.0.2", ready="False")), NOW + 1)
    assert shown(one.view) == {FIRST: "ready", SECOND: "unready"}
    one.feed(event("MODIFIED", pod("vllm-1", ip="10.1.0.2")), NOW + 2)
    assert shown(one.view) == {FIRST: "ready", SECOND: "ready"}
    one.feed(event("MODIFIED", pod(deleted=True)), NOW + 3)
    assert shown(one.view) == {FIRST: "leaving", SECOND: "ready"}
    assert one.view.gone == frozenset()
    one.feed(event("DELETED", pod(deleted=True)), NOW + 4)
    assert shown(one.view) == {SECOND: "ready"}
    assert one.view.gone == {FIRST}
    assert one.view.whole_ms == NOW + 4
    assert one.counts.events == 4


def test_a_pod_that_is_not_selected_any_more_is_missing_and_not_gone() -> None:
    one = watching(pod())
    one.feed(event("DELETED", pod()), NOW + 1)
    assert shown(one.view) == {}
    assert one.view.gone == frozenset()


def test_the_type_is_believed_and_not_the_labels() -> None:
    one = watching(pod())
    one.feed(event("DELETED", pod(labels={"app": "vllm"}, ready="True")), NOW + 1)
    assert shown(one.view) == {}


def test_who_stands_at_a_gone_address_takes_it_back() -> None:
    one = watching(pod())
    one.feed(event("DELETED", pod(deleted=True)), NOW + 1)
    one.feed(event("ADDED", pod("vllm-9", uid="new")), NOW + 2)
    assert one.view.gone == frozenset()
    assert one.view.sightings[FIRST].instance == "new"


def test_of_two_pods_at_one_address_the_better_one_is_shown_and_the_other_named() -> None:
    old = pod("old", uid="old", deleted=True)
    new = pod("new", uid="new", ready="False", created="2026-11-02T10:00:00Z")
    for pods in ((old, new), (new, old)):
        view = watching(*pods).view
        assert view.sightings[FIRST].instance == "new"
        assert [one.origin for one in view.unusable] == ["pod serving/old"]
        assert "pod serving/new stands at" in view.unusable[0].why
    older, younger = pod("a"), pod("b", created="2026-11-02T10:00:00Z")
    assert watching(younger, older).view.sightings[FIRST].origin == "pod serving/b"


def test_bookmarks_move_the_version_and_prove_life() -> None:
    one = watching(pod())
    one.feed(bookmark("99"), NOW + 60_000)
    assert one.view.whole_ms == NOW + 60_000
    assert one.watch_until_ms == NOW + 150_000
    step = ended_in_time(one)
    assert step.version == "99"


def ended_in_time(one: ListWatch) -> OpenWatch:
    """End the watch when its time is over; return what is next."""
    at = NOW
    while at < NOW + 590_000:
        at += 59_000
        one.feed(bookmark("99"), at)
    one.watch_ended(at)
    step = one.next_step(at)
    assert isinstance(step, OpenWatch)
    return step


def test_a_watch_that_ends_in_time_goes_on_without_a_list() -> None:
    one = ListWatch(READ, _Least())
    one.next_step(NOW)
    whole(one.take_page(a_list(pod()), NOW))
    step = one.next_step(NOW)
    assert isinstance(step, OpenWatch)
    assert step.timeout_s == 300
    one.watch_opened(NOW)
    for at in range(60_000, 300_000, 60_000):
        one.feed(bookmark("50"), NOW + at)
    one.watch_ended(NOW + 299_900)
    again = one.next_step(NOW + 299_900)
    assert isinstance(again, OpenWatch)
    assert again.version == "50"
    assert one.counts.failures == 0


def test_a_watch_that_ends_early_is_followed_by_a_list() -> None:
    one = watching(pod())
    one.watch_ended(NOW + 10_000)
    assert isinstance(one.next_step(NOW + 10_000), ListPage)
    assert one.view.trouble == ""


def test_watches_that_end_at_once_are_asked_for_less_and_less_often() -> None:
    one = ListWatch(READ, Random(3))
    at, waits = NOW, []
    for _ in range(8):
        one.next_step(at)
        whole(one.take_page(a_list(pod()), at))
        one.next_step(at)
        one.watch_opened(at)
        one.watch_ended(at + 5)
        step = one.next_step(at + 5)
        assert isinstance(step, Wait)
        waits.append(step.until_ms - at - 5)
        at = step.until_ms
    for wait, expected in zip(waits, (1, 2, 4, 8, 16, 30, 30, 30), strict=True):
        assert expected * 800 <= wait <= min(expected * 1200, 30_000)


def test_silence_for_90_seconds_is_a_dead_watch() -> None:
    one = watching(pod())
    one.tick(NOW + 89_999)
    assert one.is_watching
    one.tick(NOW + 90_000)
    assert not one.is_watching
    assert one.counts.silent == 1
    assert isinstance(one.next_step(NOW + 90_000), ListPage)
    assert one.view.failing_since_ms == 0
    assert shown(one.view) == {FIRST: "ready"}


def test_bytes_without_the_end_of_a_line_are_silence() -> None:
    one = watching(pod())
    for at in range(0, 90_000, 10_000):
        one.feed(b" ", NOW + at)
        assert one.is_watching
    one.feed(b" ", NOW + 90_000)
    assert not one.is_watching


def test_what_waited_while_this_process_slept_is_not_believed() -> None:
    one = watching(pod())
    one.feed(event("ADDED", pod("vllm-1", ip="10.1.0.2")), NOW + 600_000)
    assert not one.is_watching
    assert one.view.whole_ms == NOW
    assert shown(one.view) == {FIRST: "ready"}


def test_a_list_comes_every_ten_minutes_though_all_seems_well() -> None:
    one = watching(pod())
    for at in range(30_000, 600_000, 30_000):
        one.feed(bookmark("8"), NOW + at)
        assert one.is_watching
    assert one.watch_until_ms == NOW + 600_000
    one.tick(NOW + 600_000)
    assert isinstance(one.next_step(NOW + 600_000), ListPage)
    assert one.counts.silent == 0


def test_an_expired_version_is_an_error_in_a_line_and_costs_one_list() -> None:
    one = watching(pod())
    one.feed(bookmark("8"), NOW + 20_000)
    one.feed(expired(), NOW + 20_001)
    assert one.counts.expired == 1
    assert isinstance(one.next_step(NOW + 20_001), ListPage)
    assert one.view.trouble == ""


def test_another_error_in_a_line_says_what_and_waits() -> None:
    one = watching(pod())
    said = {"code": 500, "message": "etcd is away", "details": {"retryAfterSeconds": 7}}
    one.feed(event("ERROR", said), NOW + 1)
    assert one.view.trouble == "the watch was refused: 500: etcd is away"
    assert one.next_step(NOW + 1) == Wait(NOW + 7_001)


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"{}\n",
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"PAINTED","object":{}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',
        b"\xff\xfe\n",
        b"[" * 5_000 + b"\n",
    ],
)
def test_garbage_ends_the_watch_and_is_counted(line: bytes) -> None:
    one = watching(pod())
    one.feed(line + event("ADDED", pod("vllm-1", ip="10.1.0.2")), NOW + 1)
    assert not one.is_watching
    assert one.counts.garbage == 1
    assert shown(one.view) == {FIRST: "ready"}
    assert one.view.trouble != ""


def test_blank_lines_are_nothing() -> None:
    one = watching(pod())
    one.feed(b"\n\r\n \n", NOW + 1)
    assert one.is_watching
    assert one.view.whole_ms == NOW


def test_an_endless_line_ends_the_watch() -> None:
    one = watching(pod())
    for _ in range(LINE_MAX_BYTES // 65_536):
        one.feed(b"x" * 65_536, NOW + 1)
        assert one.is_watching
    one.feed(b"x", NOW + 1)
    assert not one.is_watching
    assert one.view.trouble == "a line of more than 4 MiB"


class _Least:
    """Chance that always gives the least."""

    def getrandbits(self, k: int, /) -> int:
        return 0

    def random(self) -> float:
        return 0.0
