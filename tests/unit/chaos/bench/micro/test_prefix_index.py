import json

from typer.testing import CliRunner

from smg_chaos.bench.micro.prefix_index import Load, app, measure_follower, measure_index, table
from smg_chaos.cli import app as chaos

LOAD = Load(prompts=150, families=4)


def test_prompts_are_the_same_every_time_and_share_their_beginnings() -> None:
    first, again = list(LOAD.ids()), list(LOAD.ids())
    assert first == again
    assert {len(ids) for ids in first} == {4600}
    assert first[0][:1216] == first[4][:1216] != first[1][:1216]
    assert first[0][1216:] != first[4][1216:]


def test_an_index_is_measured_with_what_it_takes() -> None:
    row = measure_index(LOAD)
    # 71 blocks a prompt; the 19 that a family shares are there once.
    assert row["entries"] == 150 * 52 + 4 * 19
    # 20 of the table, and a few for the sets.
    assert 20 < row["bytes_per_entry"] < 60
    for step in ("hash", "match", "insert", "all", "match_held_by_64"):
        assert 0 < row[step]["p10_us"] <= row[step]["median_us"] <= row[step]["p99_us"]


def test_an_engine_is_followed_without_a_loss() -> None:
    row = measure_follower(32, Load(prompts=20, families=4))
    assert row["blocks"] == 20 * (143 - 38) + 4 * 38
    assert row["median_us"] > 0
    assert 100 < row["bytes_per_block"] < 600


def test_the_command_prints_figures_for_programs_and_for_people() -> None:
    given = ["--prompts", "100", "--families", "5", "--followed", "10"]
    ran = CliRunner().invoke(app, [*given, "--json"])
    assert ran.exit_code == 0
    figures = json.loads(ran.stdout)
    assert [row["entries"] for row in figures["index"]] == [100 * 52 + 5 * 19]
    assert [row["engine_block"] for row in figures["follower"]] == [16, 32, 64]
    told = table(figures["index"], figures["follower"])
    assert "insert" in told
    assert "blocks of  64" in told
    assert "prefix-index" in CliRunner().invoke(chaos, ["--help"]).stdout
