"""Report of a game day: HTML page, JSON, and Markdown made from the JSON.

The Markdown follows from the JSON alone: `python -m smg_chaos.gameday.whole.report report.json` writes it again.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smg_chaos.bench.figures.machine import describe
from smg_chaos.gameday.whole.day_run import Day
from smg_chaos.gameday.whole.page import page
from smg_chaos.gameday.whole.scene import Scene
from smg_chaos.gameday.whole.second_series import of_nodes, of_streams
from smg_chaos.statistics import Figure, percentile
from smg_node import __version__


def write(
    folder: Path, scene: Scene, day: Day, figures: Sequence[Figure], broken: Sequence[str]
) -> None:
    """Write report.html, report.json and report.md into a folder."""
    length_s = max(1.0, (day.ended_s or scene.now_s()) - day.begun_s)
    stories = scene.surprises.told(day.faults, day.begun_s)
    told = _told(scene, day, figures, broken) | {"stories": [asdict(one) for one in stories]}
    graphs = [
        *of_streams(scene.traffic.streams, day.begun_s, length_s),
        *of_nodes(day.samples.nodes, day.begun_s),
    ]
    html = page(
        *(title_of(told), figures, day.faults, graphs, broken, stories),
        begun_s=day.begun_s,
        length_s=length_s,
    )
    (folder / "report.html").write_text(html)
    (folder / "report.json").write_text(json.dumps(told, indent=1))
    (folder / "report.md").write_text(markdown(told))


def _told(
    scene: Scene, day: Day, figures: Sequence[Figure], broken: Sequence[str]
) -> dict[str, Any]:
    return {
        "seed": scene.stage.seed,
        "nodes": len(scene.nodes),
        "engines": len(scene.engines),
        "store": scene.stage.store,
        "seconds": round((day.ended_s or scene.now_s()) - day.begun_s, 3),
        "planned_s": scene.stage.seconds,
        "only": list(scene.stage.faults),
        "version": __version__,
        "machine": describe(),
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


# ── Markdown ─────────────────────────────────────────────────────────────────


def title_of(told: Mapping[str, Any]) -> str:
    """Return what a day is called that is told in JSON."""
    return f"A game day: {told['nodes']} nodes, {told['seconds'] / 60:.1f} minutes, seed {told['seed']}, {told['store']}"


def markdown(told: Mapping[str, Any]) -> str:
    """Return a day that is told in JSON as Markdown: how to repeat it, its figures, its faults, and what was broken."""
    rows = [
        f"# {title_of(told)}",
        "",
        "Every promise was kept." if told["kept"] else "**Not every promise was kept.**",
        *("", "```sh", _command(told), "```", "", _ground(told), ""),
        *("| what | value | target | |", "|---|---|---|---|"),
        *map(_row, told["figures"]),
        *("", *_kinds(told["faults"])),
    ]
    if told["broken"]:
        rows += ["", "What went wrong:", "", *(f"- `{line}`" for line in told["broken"])]
    for story in told.get("stories", ()):
        rows += ["", *_story(story)]
    return "\n".join(rows) + "\n"


def _command(told: Mapping[str, Any]) -> str:
    minutes = told.get("planned_s", round(told["seconds"])) / 60
    only = f" --faults {','.join(told['only'])}" if told.get("only") else ""
    return (
        f"smg-chaos gameday whole --nodes {told['nodes']} --minutes {minutes:g} --seed {told['seed']}"
        f" --store {told['store']} --engines {told['engines']}{only}"
    )


def _ground(told: Mapping[str, Any]) -> str:
    machine = told.get("machine")
    if not machine:
        return "On what it ran was not noted."
    return (
        f"smg-node {told['version']} ({machine['commit'] or 'no commit'}), Python {machine['python']}, Linux"
        f" {machine['kernel']}, {machine['cores']} cores of {machine['cpu']}; load"
        f" {machine['load_average'][0]:.1f} in the end."
    )


def _row(one: Mapping[str, Any]) -> str:
    value = "never" if one["value"] is None else f"{one['value']:,.2f}".removesuffix(".00")
    limit = "" if one["limit"] is None else f"≤ {one['limit']:g} {one['unit']}".rstrip()
    word = "" if one["limit"] is None else "kept" if one["is_met"] else "**broken**"
    return f"| {one['metric']} | {value} {one['unit']} | {limit} | {word} {one['says']} |"


def _kinds(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of the kinds of faults: how often, how long, and for how long each could still be noticed."""
    rows = [
        "| fault | times | seconds in all | healed after, p50 | worst |",
        "|---|---|---|---|---|",
    ]
    for name in sorted({one["name"] for one in faults}):
        own = [one for one in faults if one["name"] == name]
        heals = [one["healed_after_s"] for one in own]
        known = [one for one in heals if one is not None]
        worst = "never" if len(known) < len(own) else f"{max(known):.1f} s"
        p50 = f"{percentile(known, 0.5):.1f} s" if known else "never"
        lasted_s = sum(one["lasted_s"] for one in own)
        rows.append(f"| {name} | {len(own)} | {lasted_s:.0f} | {p50} | {worst} |")
    return rows


def _story(one: Mapping[str, Any]) -> list[str]:
    """Return what was around a surprise: when it was, which faults, and what the nodes that it names said then."""
    where = f" at {one['node']}" if one["node"] else ""
    took = f"begun at {one['begun_s']:.1f} s, ended at {one['ended_s']:.1f} s"
    rows = [f"### {one['kind']}{where}, {took} ({one['at']})", "", f"`{one['says']}`", ""]
    rows += [f"- {fault}" for fault in one["faults"]] or ["- No fault was on, or just over."]
    if one["logged"]:
        rows += ["", "```text", *one["logged"], "```"]
    return rows


if __name__ == "__main__":
    sys.stdout.write(markdown(json.loads(Path(sys.argv[1]).read_text())))
