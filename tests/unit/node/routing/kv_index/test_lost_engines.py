"""What was heard of an engine that nobody hears any more."""

from smg_node.engines.kv_events import Tier
from smg_node.routing.kv_index.prefix_index import ASSUMED_S, PrefixIndex


def test_what_nobody_hears_any_more_is_assumed_for_a_while() -> None:
    index = PrefixIndex()
    heard: list[tuple[str, bool]] = []
    index.watch(
        lambda *_: None,
        lambda *_: None,
        lambda worker, *, perhaps: heard.append((worker, perhaps)),
    )
    index.doubt("w", 0.0)
    index.doubt_told("w", 0.0)
    index.stored("w", [1, 2], Tier.DEVICE, 0.0)
    index.tell("w", [3], 0.0)
    index.tell("v", [1], 0.0)
    index.doubt("w", 1.0)
    assert heard == [("w", True)]
    assert index.held("w") == []
    assert index.match([1, 2, 3], 1.0) == {"w": 2.0, "v": 1.0}
    assert index.match([3], 1.0) == {"w": 1.0}
    index.doubt_told("w", 1.0)
    assert index.match([1, 2, 3], 1.0) == {"w": 1.5, "v": 1.0}
    assert index.blocks("w") == 3
    index.tell("w", [1], 2.0)
    index.removed("w", [2], Tier.DEVICE)
    assert index.match([1, 2], 2.0) == {"w": 1.0, "v": 1.0}
    assert index.match([3], ASSUMED_S + 1.0) == {}
    assert heard == [("w", True)]
