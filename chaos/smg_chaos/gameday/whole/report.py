"""What a day leaves behind: a page for people, JSON for machines, and a short table in Markdown."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smg_chaos.gameday.figures import Figure
from smg_chaos.gameday.whole.day import Day
from smg_chaos.gameday.whole.page import page
from smg_chaos.gameday.whole.scene import Scene
from smg_chaos.gameday.whole.series import of_nodes, of_streams


def write(
    folder: Path, scene: Scene, day: Day, figures: Sequence[Figure], broken: Sequence[str]
) -> None:
    """Write report.html, report.json and report.md into a folder."""
    length_s = max(1.0, (day.ended_s or scene.now_s()) - day.begun_s)
    stage = scene.stage
    title = f"A game day: {len(scene.nodes)} nodes, {length_s / 60:.1f} minutes, seed {stage.seed}, {stage.store}"
    graphs = [
        *of_streams(scene.traffic.streams, day.begun_s, length_s),
        *of_nodes(day.samples.nodes, day.begun_s),
    ]
    html = page(title, figures, day.faults, graphs, broken, begun_s=day.begun_s, length_s=length_s)
    (folder / "report.html").write_text(html)
    (folder / "report.json").write_text(json.dumps(_told(scene, day, figures, broken), indent=1))
    (folder / "report.md").write_text(table(title, figures))


def _told(
    scene: Scene, day: Day, figures: Sequence[Figure], broken: Sequence[str]
) -> dict[str, Any]:
    return {
        "seed": scene.stage.seed,
        "nodes": len(scene.nodes),
        "engines": len(scene.engines),
        "store": scene.stage.store,
        "seconds": round((day.ended_s or scene.now_s()) - day.begun_s, 3),
        "is_over": day.is_over,
        "kept": day.is_over and all(one.is_met for one in figures),
        "figures": [{**asdict(one), "is_met": one.is_met} for one in figures],
        "faults": [
            {
                "name": one.name,
                "told": one.told,
                "at_s": round(one.begun_s - day.begun_s, 3),
                "lasted_s": round(one.ended_s - one.begun_s, 3),
                "healed_after_s": None if one.heals_s is None else round(one.heals_s, 3),
            }
            for one in day.faults
        ],
        "broken": list(broken),
    }


def table(title: str, figures: Sequence[Figure]) -> str:
    """Return the figures as a table in Markdown, with a heading."""
    rows = [f"# {title}", "", "| what | value | target | |", "|---|---|---|---|"]
    for one in figures:
        value = "never" if one.value is None else f"{one.value:,.2f}".removesuffix(".00")
        limit = "" if one.limit is None else f"≤ {one.limit:g} {one.unit}".rstrip()
        word = "" if one.limit is None else "kept" if one.is_met else "**broken**"
        rows.append(f"| {one.metric} | {value} {one.unit} | {limit} | {word} {one.says} |")
    return "\n".join(rows) + "\n"
