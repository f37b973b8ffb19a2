from prometheus_client import CollectorRegistry

from smg_node.admission.admission_settings import watch_admission
from smg_node.admission.limit_counters import LIMITS_MAX, Tallies
from smg_node.telemetry.metrics.meters import Meters


def test_so_many_limits_are_counted_apart_and_the_rest_together() -> None:
    tallies = Tallies()
    for at in range(LIMITS_MAX + 5):
        tallies.of(f"tenant=t{at}#requests/minute").refused += 1
    requests = tallies.requests()
    assert len(requests) == 3 * (LIMITS_MAX + 1)
    assert requests["other", "refused"] == 5
    assert requests["tenant=t0#requests/minute", "refused"] == 1


def test_scrapes_read_what_limits_did() -> None:
    meters, tallies = Meters(CollectorRegistry(), version="1"), Tallies()
    watch_admission(meters, tallies)
    tally = tallies.of("global#tokens/day")
    tally.admitted, tally.waited, tally.charged, tally.owed = 3, 2, 700, 40
    tallies.begun, tallies.ended = 4, 3
    page = meters.exposition("")[0].decode()
    for line in (
        'smg_node_limit_requests_total{limit="global#tokens/day",outcome="admitted"} 3.0',
        'smg_node_limit_requests_total{limit="global#tokens/day",outcome="refused"} 0.0',
        'smg_node_limit_requests_total{limit="global#tokens/day",outcome="waited"} 2.0',
        'smg_node_limit_charged_total{limit="global#tokens/day"} 700.0',
        'smg_node_limit_owed_total{limit="global#tokens/day"} 40.0',
        "smg_node_limited_requests_open 1.0",
    ):
        assert line in page
