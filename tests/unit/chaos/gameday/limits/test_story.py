"""Chapters and records: whole windows, what was sent when, and whom nobody may blame."""

from smg_chaos.gameday.limits.clients.trial_records import Answer, Arrival
from smg_chaos.gameday.limits.judge import Allowance, Amount, Span
from smg_chaos.gameday.limits.story import Chapter, Hurt, Record

SECOND_US = 1_000_000


def answer(serial: int, sent_us: int, got_us: int, status: int = 200, node: int = 0) -> Answer:
    return Answer(
        serial, node, sent_us, got_us, status, "" if status else "the connection was lost"
    )


def arrival(serial: int, came_us: int, calls: int = 1) -> Arrival:
    return Arrival(serial, came_us, came_us + 10, calls, 20, 2)


def test_only_whole_windows_belong_to_a_chapter() -> None:
    chapter = Chapter("even", 5_200_000, 9_900_000)
    assert chapter.windows(SECOND_US) == (6, 8)
    assert chapter.windows(SECOND_US, after_us=SECOND_US) == (7, 8)
    assert Chapter("exact", 5_000_000, 7_000_000).windows(SECOND_US) == (5, 6)
    first, last = Chapter("short", 5_100_000, 5_900_000).windows(SECOND_US)
    assert first > last


def test_a_record_holds_what_was_sent_in_a_chapter_and_counts_what_arrived() -> None:
    answers = [
        answer(1, 5_100_000, 5_200_000),
        answer(2, 5_900_000, 6_200_000),
        answer(3, 6_100_000, 6_200_000, 429),
        answer(4, 7_000_000, 7_100_000, 0),
    ]
    record = Record(answers, {1: arrival(1, 5_150_000), 2: arrival(2, 6_150_000)})
    allowance = Allowance(SECOND_US, [Amount(9, 0)])
    assert record.spans(allowance, 0) == [Span(5, 5), Span(5, 6)]
    part = record.of(Chapter("later", 5_500_000, 7_000_000))
    assert [one.serial for one in part.answers] == [2, 3]
    assert part.spans(allowance, 0) == [Span(5, 6)]
    assert record.counts() == {"200": 2, "429": 1, "the connection was lost": 1}
    assert record.refused() == 1


def test_a_request_that_no_client_has_an_answer_of_yet_is_not_judged_but_a_lost_one_is() -> None:
    lost = answer(4, 7_000_000, 7_100_000, 0)
    record = Record([lost], {4: arrival(4, 7_050_000), 5: arrival(5, 7_050_000)})
    assert len(record.spans(Allowance(SECOND_US, []), 0)) == 1


def test_who_was_hurt_is_excused_and_nobody_else() -> None:
    hurt = Hurt()
    hurt.add(1, 100, 200)
    hurt.add(1, 500, 600)
    lost = [answer(1, 50, 90, 0, 1), answer(2, 90, 150, 0, 1), answer(3, 210, 520, 0, 1)]
    other = [answer(4, 120, 150, 0, 2), answer(5, 120, 150, 503, 2), answer(6, 1, 2, 429, 2)]
    failed = Record([*lost, *other], {}).failed(hurt)
    assert [one.serial for one in failed] == [1, 4, 5]
