from smg_node.config.frozen_settings import Settings, plain_settings
from smg_node.history.ports import HistoryOptions, Quota
from smg_node.history.service.history_options import history_options
from support.tools.configuration import load


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
        *("--retention.idempotency-s", "60", "--retention.sweep-s", "5"),
        *("--storage.quota.responses-max", "10", "--storage.quota.conversations-max", "11"),
        *("--storage.quota.max-bytes", "12"),
        *("--responses.resume-grace-s", "30", "--responses.event-log-ttl-s", "60"),
        *("--responses.background.per-node-max", "20"),
        *("--responses.background.per-tenant-max", "10"),
        *("--responses.background.deadline-s", "100"),
    )
    assert history_options(settings(*flags)) == HistoryOptions(
        items_max=7,
        bytes_max=2048,
        store_timeout_s=1.5,
        responses_kept_s=259_200,
        conversations_kept_s=172_800,
        context_headers=("x-team",),
        reasoning_events="open",
        keys_kept_s=60,
        sweep_s=5.0,
        quota=Quota(10, 11, 12),
        resume_grace_s=30.0,
        event_log_kept_s=60.0,
        background_deadline_s=100.0,
        background_node_max=20,
        background_tenant_max=10,
    )


def test_whoever_holds_the_options_sees_what_they_become() -> None:
    held = history_options(settings())
    held.become(history_options(settings("--history.items-max", "7")))
    assert held == HistoryOptions(items_max=7)
