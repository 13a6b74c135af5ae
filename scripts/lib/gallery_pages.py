"""Pages of the galleries, generated from the declarations of the environments."""

from pathlib import Path
from typing import Any

import numpy as np
from gallery_pictures import ROOT, path_of, path_of_binding
from gymnasium.spaces import Box, Discrete

import pufferlib
from pufferlib import ocean, registry
from pufferlib.ocean.types import env_types
from pufferlib.play.controls import KeyMap, keys_for

DOCS = ROOT / "docs"
OCEAN, BINDINGS = DOCS / "ocean.md", DOCS / "gallery.md"
AGAIN = "scripts/gallery"
MADE = f"<!-- Made by {AGAIN}; change that, not this. -->"


DIFFERENCES = [  # section of the Ocean page
    "## Differences from PufferLib's descriptions",
    "",
    "PufferLib's blog and its paper describe some of these environments. These rules differ here:",
    "",
    "| Environment | Described there | Here |",
    "| --- | --- | --- |",
    "| `squared` | The reward is 1 minus the L-infinity distance to the nearest target. | The reward is paid on the "
    "edge only. If it were paid in each step, waiting beside a target would pay most. Distances are relative to the "
    "distance from the center to the edge. |",
    "| `squared` | The agent returns to the center when it hits a target. | It returns to the center from "
    "every cell of the edge. |",
    "| `squared` | There are settings for memory, exploration and stochasticity. | `memory`, `exploration` and "
    "`stochasticity` are 0 or 1. Their rules are ours, because none are described. |",
    "| `stochastic` | Action 0 is played with probability p. | The step limit is a truncation. The reward depends on "
    "the share of action 0 in the episode so far, so a policy that counts its actions needs no randomness. |",
    "| `memory` | The digits are recited after a pause. | Playing 0 while digits are shown is rewarded, too. |",
    "| `bandit` | A multiarmed bandit. | `reward_noise` is the standard deviation of the noise before `reward_scale` "
    "multiplies it, once. |",
    "| `moba` | Lane creeps, neutrals and towers, 5 heroes a side. | The other side is scripted, unless "
    "`script_opponents` is false. |",
    "| `nmmo3` | Hundreds to thousands of agents. | A game has 8 agents by default, and up to 2,048. |",
    "| `snake` | 256 snakes and 4,096 pieces of food by default. | A game has 16 snakes and 200 pieces of food by "
    "default. |",
    "",
    "`password`, `multiagent`, `spaces`, `pong`, `breakout`, `enduro`, `connect4`, `tripletriad`, `go`, `rware`, "
    "`trash_pickup` and `tactical` follow the descriptions, which leave out most rules.",
]


def ocean_names() -> list[str]:
    """Return the names of all Ocean environments, in C and in Python."""
    return sorted([*ocean.names(), *ocean.python_names()])


def binding_names() -> list[str]:
    """Return the names of the bindings whose packages are available."""
    return [facts.name for facts in registry.binding_facts().values() if not facts.unavailable]


def paths() -> list[Path]:
    """Return the paths of all images."""
    return [*map(path_of, ocean_names()), *map(path_of_binding, binding_names())]


def write() -> None:
    """Write the pages."""
    for page, text in _texts().items():
        page.write_text(text, encoding="utf-8")


def problems() -> list[str]:
    """Compare the pages with the expected ones, and return a message for each difference."""
    found = [
        f"{page.relative_to(ROOT)} is out of date; run {AGAIN} and commit what it writes"
        for page, text in _texts().items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    found += [
        f"{path_of(name).relative_to(ROOT)} is missing; run {AGAIN} {name} and commit what it writes"
        for name in ocean_names()
        if not path_of(name).exists()
    ]
    drawn = set(paths())
    found += [
        f"{path.relative_to(ROOT)} belongs to no environment; delete it"
        for path in (DOCS / "pictures").glob("*/*.png")
        if path not in drawn
    ]
    return found


def _texts() -> dict[Path, str]:
    return {OCEAN: _ocean_page(), BINDINGS: _bindings_page()}


def _picture(path: Path) -> str:
    return f"![{path.stem}]({path.relative_to(DOCS)})"


# ---- Ocean -------------------------------------------------------------------------------------------


def _ocean_page() -> str:
    names = ocean_names()
    lines = [
        MADE,
        "# Ocean",
        "",
        f"{len(ocean.names())} environments are written in C, {len(ocean.python_names())} in Python. Each image shows",
        "the middle of an episode, in most cases with random actions. Numbers are for the default parameters, which",
        "`help(pufferlib.ocean.Pong)` lists. The rules are in the comment at the top of `pufferlib/ocean/pong/pong.h`.",
        "[Render and play](render.md) explains images and keys.",
        "",
        " · ".join(f"[{name}](#{name})" for name in names),
        "",
        *DIFFERENCES,
        "",
    ]
    for name in names:
        lines += [f"## {name}", "", _picture(path_of(name)), "", ocean.about(name), "", *_facts_of(name), ""]
    return "\n".join(lines)


def _facts_of(name: str) -> list[str]:
    env = pufferlib.make(name)
    try:
        rows = [("Observation", _space(env.single_observation_space)), ("Actions", _space(env.single_action_space))]
        if name in ocean.names():
            rows.append(("Agents in a game", str(env.num_agents)))
            rows.append(("Memory of a game", f"{env.game_bytes:,} bytes"))
            rows += [("Metrics", "<br>".join(f"`{key}`: {about}" for key, about in env_types()[name].metrics.items()))]
        key_map = KeyMap(env.single_action_space, keys_for(env.single_action_space, _declared(name)))
        rows.append(("Play", f"`puffer play {name}`: {', '.join(key_map.help())}"))
    finally:
        env.close()
    return ["| | |", "| --- | --- |", *(f"| {label} | {text.replace('|', chr(92) + '|')} |" for label, text in rows)]


def _declared(name: str) -> Any:
    return env_types()[name].keys if name in ocean.names() else ()


def _space(space: Any) -> str:
    if isinstance(space, Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, Box):
        shape = " x ".join(map(str, space.shape))
        low, high = np.min(space.low), np.max(space.high)
        return f"{shape} {space.dtype} from {low:g} to {high:g}"
    return f"MultiDiscrete({', '.join(map(str, space.nvec))})"


# ---- Bindings ----------------------------------------------------------------------------------------


def _bindings_page() -> str:
    lines = [
        MADE,
        "# Gallery of the bindings",
        "",
        "One environment of each [binding](bindings.md), after some random steps.",
        "",
    ]
    for name in binding_names():
        if not path_of_binding(name).exists():
            continue
        facts = registry.binding_facts()[name]
        lines += [f"## {name}", "", _picture(path_of_binding(name)), "", f"`{name}/{facts.example}`: {facts.about}", ""]
    return "\n".join(lines)
