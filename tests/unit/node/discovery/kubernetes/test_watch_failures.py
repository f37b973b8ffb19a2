"""List and watch: what fails keeps the view, says since when, and is asked for less and less often."""

from smg_node.core.cooperative_steps import whole
from smg_node.discovery.kubernetes.watching import Wait
from support.kubernetes.list_watches import FIRST, NOW, machine, shown, watching
from support.kubernetes.pod_text import a_list, pod


def test_failures_keep_the_view_and_say_since_when() -> None:
    one = watching(pod())
    one.watch_ended(NOW + 20_000)
    for at in (21_000, 60_000):
        one.next_step(NOW + at)
        one.failed(f"403: at {at}", NOW + at)
    assert one.view.trouble == "403: at 60000"
    assert one.view.failing_since_ms == NOW + 21_000
    assert one.view.whole_ms == NOW
    assert shown(one.view) == {FIRST: "ready"}


def test_it_fails_until_its_watch_is_open() -> None:
    one = machine()
    one.failed("away", NOW)
    one.next_step(NOW + 2_000)
    whole(one.take_page(a_list(pod()), NOW + 2_000))
    assert one.view.trouble == "away"
    one.next_step(NOW + 2_000)
    one.watch_opened(NOW + 2_001)
    assert (one.view.trouble, one.view.failing_since_ms) == ("", 0)


def test_retry_after_is_obeyed_within_a_minute() -> None:
    one = machine()
    one.failed("429", NOW, retry_after_s=40)
    assert one.next_step(NOW) == Wait(NOW + 40_000)
    one.failed("429", NOW, retry_after_s=10**9)
    assert one.next_step(NOW) == Wait(NOW + 60_000)
    one.failed("429", NOW, retry_after_s=-5)
    step = one.next_step(NOW)
    assert isinstance(step, Wait)
    assert step.until_ms < NOW + 6_000
