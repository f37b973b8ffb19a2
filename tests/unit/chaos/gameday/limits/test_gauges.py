"""What nodes count of themselves, as it is read off a scrape."""

from smg_chaos.gameday.limits.gauges import PACKETS, packets, value_of


def test_a_series_is_found_by_its_whole_name() -> None:
    text = (
        "# HELP smg_node_rights_packets_total x\n"
        'smg_node_rights_packets_total{direction="in"} 7\n'
        'smg_node_rights_packets_total{direction="out"} 12.0\n'
    )
    assert value_of(text, PACKETS) == 12.0
    assert value_of(text, "smg_node_rights_packets") == 0.0


def test_packets_are_told_per_node_and_second_and_of_the_busiest() -> None:
    figure = packets("even", [10.0, 20.0], [110.0, 40.0], 2.0)
    assert (figure.value, figure.is_met, figure.says) == (30.0, True, "the busiest 50")
    assert not packets("even", [0.0], [81.0], 2.0).is_met
