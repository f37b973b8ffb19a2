"""The measurement of what rights cost: it measures, and its cluster does what it should."""

import json

from typer.testing import CliRunner

from smg_chaos.bench.micro.rights import Case, Scene, app, measure, table


def test_a_row_has_its_figures_and_they_can_be_read() -> None:
    rows = measure([Case(2, 3, 40)], rounds=2, seconds=1)
    assert len(rows) == 1
    row = rows[0]
    assert (row["nodes"], row["hot"], row["keys"]) == (2, 3, 40)
    assert 0 < row["best_percent"] <= row["cpu_percent"] <= row["worst_percent"]
    assert row["packets_per_s"] > 0
    assert "2 nodes,   3 hot of     40 keys" in table(rows, (1.0, 0.5))


def test_nodes_that_nobody_asks_are_quiet() -> None:
    scene = Scene(Case(2, 0, 20))
    _, _, packets = scene.round(2)
    assert packets <= 2


def test_what_is_offered_is_admitted_where_it_fits() -> None:
    scene = Scene(Case(2, 2, 20))
    scene.round(3)
    window = scene.wall_ms // 1_000 - 1
    spent = [
        row.spent
        for node in scene.nodes.values()
        for row in node.core.rows()
        if row.window == window and hasattr(row, "spent")
    ]
    assert 95 <= sum(spent) <= 100


def test_the_command_prints_rows_and_memory() -> None:
    options = [
        "--nodes",
        "1",
        "--hot",
        "1",
        "--keys",
        "10",
        "--rounds",
        "1",
        "--seconds",
        "1",
        "--json",
    ]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    said = json.loads(result.output)
    assert len(said["rows"]) == 1
    assert said["memory_mib"][0] >= said["memory_mib"][1] > 0
