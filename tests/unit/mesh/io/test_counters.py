from smg_mesh.io.counters import COUNTERS_MAX, Counters


def test_values_add_up_under_name_and_detail() -> None:
    counters = Counters()
    counters.add("refused", "key")
    counters.add("refused", "key", 2)
    counters.add("probe_ok")
    assert counters.all() == {("refused", "key"): 3, ("probe_ok", ""): 1}
    assert counters.get("refused", "tag") == 0


def test_details_from_outside_cannot_fill_the_memory() -> None:
    counters = Counters()
    for number in range(COUNTERS_MAX + 100):
        counters.add("accusation_ignored", f"node-{number}")
    counters.add("probe_ok")
    assert len(counters.all()) <= COUNTERS_MAX + 2
    assert counters.get("accusation_ignored", "other") == 100
    assert counters.get("probe_ok") == 1
