"""Results of training: keeps finished runs and writes docs/results.md, the table and the curves, from them.

    puffer train breakout
    python benchmarks/learning.py runs/20261121-092340-breakout    # keeps it; an older one of breakout goes
    python benchmarks/learning.py --agent runs/20261121-092340-breakout    # keeps nothing of it but its agent
    python benchmarks/learning.py --seeds runs/*breakout    # keeps what runs that differ in their seed alone reached
    python benchmarks/learning.py                                  # writes the page anew
    python benchmarks/learning.py --check                          # exit code 1 if it is not what would be written

What is kept of a run are its figures, docs/curves/NAME.json, its curve, docs/curves/NAME.png, and of an environment of
Ocean its agent, pufferlib/ocean/NAME/agent.safetensors, which ships with it. Of several seeds it is their scores and
one picture of their curves, docs/curves/NAME-seeds.png.
"""

import argparse
import dataclasses
import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import figure, machine

from pufferlib import ocean
from pufferlib.analysis import plot
from pufferlib.training import Config, Run, checkpoint, load_config, plot_learning_curve, read_metrics

ROOT = Path(__file__).parent.parent
PAGE, CURVES = ROOT / "docs" / "results.md", ROOT / "docs" / "curves"

SEED_KEYS = ("seed", "score", "score_std", "episodes", "metrics")  # of a summary
HEAD = """# What training reaches

Written by `python benchmarks/learning.py` from runs of the commands below. Scores are means over episodes that the
agent plays after training, with half the width of their 95 % interval; random play had as many episodes. The deviation
is that of single episodes. Where several seeds were trained, a table and their curves, the interquartile mean with its
95 % bootstrap interval, stand below. A short run shows how learning begins, not how far it goes. Runs marked "busy"
shared their cores with other work: alone they are faster.

"""


def main() -> int:
    """Keep the runs that are named and write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of finished runs to keep")
    parser.add_argument("--agent", action="store_true", help="keep nothing but their agents: the figures are there")
    parser.add_argument("--seeds", action="store_true", help="add them to what is kept of their environments")
    parser.add_argument("--busy", action="store_true", help="they shared their cores with other programs")
    parser.add_argument("--check", action="store_true", help="write nothing; whether the page is as it would be")
    arguments = parser.parse_args()
    if arguments.seeds:
        keep_seeds(arguments.runs)
    elif not arguments.check:
        for folder in arguments.runs:
            keep(folder, arguments.busy, arguments.agent)
    page = render([json.loads(path.read_text()) for path in sorted(CURVES.glob("*.json"))])
    if arguments.check:
        return int(PAGE.read_text() != page)
    PAGE.write_text(page)
    print(f"written to {PAGE}")
    return 0


def keep(folder: Path, busy: bool, only_agent: bool) -> None:
    """Copy the figures of a run, draw its curve, and let its agent ship if its environment is of Ocean."""
    config, summary = Config.load(folder / "config.toml"), json.loads((folder / "summary.json").read_text())
    if config.env_name in (*ocean.names(), *ocean.python_names()):
        ship(Run.at(folder), config)
    if only_agent:
        return
    name = config.env_name.replace("/", "-")
    CURVES.mkdir(exist_ok=True)
    here = machine()
    source = {key: here[key] for key in ("commit", "date", "cpu")}
    record = {"env_name": config.env_name, **source, **summary, "command": command(config), "busy": busy}
    (CURVES / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    plot_learning_curve(
        CURVES / f"{name}.png", read_metrics(folder / "metrics.jsonl"), config.env_name, summary["random_score"]
    )
    print(f"kept {config.env_name}")


def keep_seeds(folders: list[Path]) -> None:
    """Add the scores and curves of runs to what is kept of their environments."""
    configs = {folder: Config.load(folder / "config.toml") for folder in folders}
    ordered = sorted(folders, key=lambda folder: (configs[folder].env_name, configs[folder].train.seed))
    for name, group in itertools.groupby(ordered, key=lambda folder: configs[folder].env_name):
        runs = list(group)
        commands = {
            command(dataclasses.replace(configs[run], train=dataclasses.replace(configs[run].train, seed=0)))
            for run in runs
        }
        if len(commands) > 1:
            sys.exit(f"{name}: expected runs that differ in their seed alone, got {sorted(commands)}")
        file = CURVES / f"{name.replace('/', '-')}.json"
        record = json.loads(file.read_text())
        summaries = [json.loads((run / "summary.json").read_text()) for run in runs]
        record["seeds"] = [{key: summary[key] for key in SEED_KEYS} for summary in summaries]
        file.write_text(json.dumps(record, indent=2) + "\n")
        plot(runs, CURVES / f"{name.replace('/', '-')}-seeds.png")
        print(f"kept {len(runs)} seeds of {name}")


def ship(run: Run, config: Config) -> None:
    """Let the agent of a run ship with its environment, to be evaluated as others are and on any device."""
    usual = load_config(config.env_name)
    settings = dataclasses.replace(
        config, eval=usual.eval, train=dataclasses.replace(config.train, device=usual.train.device)
    )
    about = dataclasses.replace(run.about(), config=settings.to_toml())
    checkpoint.write_policy(ocean.agent_file(config.env_name), checkpoint.read_policy(run.checkpoint), about)
    print(f"the agent of {config.env_name} ships")


def command(config: Config) -> str:
    """The command that repeats a run: `puffer train NAME` and what differs from the settings of NAME."""
    usual, words = dataclasses.asdict(load_config(config.env_name)), [f"puffer train {config.env_name}"]
    for section, values in dataclasses.asdict(config).items():
        if isinstance(values, dict):
            for key, value in values.items():
                if value != usual[section].get(key):
                    words.append(f"--{section}.{key.replace('_', '-')} {value}")
    return " ".join(words)


def render(records: list[dict[str, Any]]) -> str:
    """The page as Markdown."""
    rows = [
        "| Environment | Agent steps | Time | Score | Deviation | Random play |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *map(row, records),
    ]
    return HEAD + "\n".join([*rows, *map(section, records)]) + "\n"


def row(record: dict[str, Any]) -> str:
    """A line of the table."""
    name, busy = record["env_name"], ", busy" if record.get("busy") else ""
    score, chance = (
        f"{figure(record[kind])} ± {figure(half_width(record, kind))}" for kind in ("score", "random_score")
    )
    return (
        f"| [`{name}`](#{anchor(name)}) | {millions(record['agent_steps'])} | {duration(record['train_s'])}{busy} "
        f"| {score} | {figure(record['score_std'])} | {chance} |"
    )


def half_width(record: dict[str, Any], kind: str) -> float:
    """Half the width of the 95 % interval of a mean: the agent's ("score") or random play's ("random_score")."""
    deviation: float = record[f"{kind}_std"]
    return 1.96 * deviation / math.sqrt(record["episodes"])


def section(record: dict[str, Any]) -> str:
    """Return the curve of a run and how to repeat it."""
    name = record["env_name"]
    shared = " that were busy with other programs" if record.get("busy") else ""
    picture = name.replace("/", "-")
    note = f"{record['note']}\n\n" if "note" in record else ""
    return (
        f"\n## {name}\n\n```\n{record['command']}\n```\n\n{millions(record['agent_steps'])} agent steps in "
        f"{duration(record['train_s'])} on {record['cores']} cores ({record['cpu']}){shared}, device "
        f"{record['device']}, seed {record['seed']}. Kept on {record['date']} at commit {record['commit']}.\n\n"
        f"{note}![Learning curve of {name}](curves/{picture}.png)" + (seeds(record) if "seeds" in record else "")
    )


def seeds(record: dict[str, Any]) -> str:
    """A table of what each seed reached, and their curves."""
    lines = [
        "| Seed | Score | Deviation | Share of the best, `perf` | Episodes |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in record["seeds"]:
        score = f"{figure(each['score'])} ± {figure(half_width(each, 'score'))}"
        perf = figure(each["metrics"]["perf"]) if "perf" in each["metrics"] else ""
        lines.append(f"| {each['seed']} | {score} | {figure(each['score_std'])} | {perf} | {each['episodes']:,} |")
    picture = record["env_name"].replace("/", "-")
    return "\n".join(["\n", *lines, "", f"![Learning curves of its seeds](curves/{picture}-seeds.png)"])


def anchor(title: str) -> str:
    """Anchor of a heading, as Markdown pages name it."""
    return "".join(c for c in title.lower() if c.isalnum() or c in "-_ ").replace(" ", "-")


def millions(steps: int) -> str:
    """10,000,000 as "10 M"."""
    return f"{steps / 1e6:.3g} M"


def duration(seconds: float) -> str:
    """Seconds, or minutes where they are many."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    sys.exit(main())
