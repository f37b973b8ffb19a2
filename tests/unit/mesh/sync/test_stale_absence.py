from smg_mesh.sync.stale_absence import STALE_MS, Absence

KEEP_MS = 100_000


def test_a_node_that_runs_is_never_stale() -> None:
    absence = Absence(KEEP_MS, 0)
    for now_ms in range(0, 5 * KEEP_MS, KEEP_MS // 2):
        absence.tick(now_ms)
        assert not absence.stale(now_ms)


def test_a_process_that_stood_still_for_too_long_is_stale_for_a_minute() -> None:
    absence = Absence(KEEP_MS, 0)
    absence.tick(KEEP_MS)
    assert not absence.stale(KEEP_MS)
    absence.tick(2 * KEEP_MS + 1)
    assert absence.stale(2 * KEEP_MS + STALE_MS)
    assert not absence.stale(2 * KEEP_MS + 1 + STALE_MS)


def test_what_was_loaded_grows_older_until_an_exchange_has_come_to_its_end() -> None:
    absence = Absence(KEEP_MS, 0)
    absence.loaded(KEEP_MS - 2_000, 0)
    for now_ms in (1_000, 2_000):
        absence.tick(now_ms)
        assert not absence.stale(now_ms)
    absence.tick(2_001)
    assert absence.stale(2_001)


def test_who_has_met_somebody_in_time_is_not_stale_later() -> None:
    absence = Absence(KEEP_MS, 0)
    absence.loaded(KEEP_MS - 2_000, 0)
    absence.met()
    for now_ms in (2_001, 50_000, 100_000):
        absence.tick(now_ms)
        assert not absence.stale(now_ms)


def test_giving_way_and_a_minute_alone_end_it_once_and_for_all() -> None:
    for gives_way in (True, False):
        absence = Absence(KEEP_MS, 0)
        absence.loaded(KEEP_MS + 1, 0)
        assert absence.stale(0)
        if gives_way:
            absence.over(0)
        for now_ms in range(STALE_MS, 3 * KEEP_MS, 1_000):
            absence.tick(now_ms)
            assert not absence.stale(now_ms)
