from smg_node.config.plain import Settings, plain_settings
from smg_node.history.desks import history_options
from smg_node.history.ports import HistoryOptions
from support.configuration import load


def settings(*flags: str) -> Settings:
    return plain_settings(load(flags).settings)


def test_without_a_word_the_options_are_the_defaults() -> None:
    assert history_options(settings()) == HistoryOptions()


def test_every_option_can_be_chosen() -> None:
    flags = (
        *("--history.items-max", "7", "--history.bytes-max", "2048"),
        *("--storage.timeout-s", "1.5", "--storage.context-headers", "X-Team"),
        *("--retention.responses-days", "3", "--retention.conversations-days", "2"),
        *("--responses.reasoning-events", "open"),
    )
    assert history_options(settings(*flags)) == HistoryOptions(
        items_max=7,
        bytes_max=2048,
        store_timeout_s=1.5,
        responses_kept_s=259_200,
        conversations_kept_s=172_800,
        context_headers=("x-team",),
        reasoning_events="open",
    )
