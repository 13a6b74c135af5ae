"""The pages of the galleries, made of what the environments declare."""

from pathlib import Path
from typing import Any

import numpy as np
from gallery_pictures import ROOT, path_of
from gymnasium.spaces import Box, Discrete

import pufferlib
from pufferlib import ocean, registry
from pufferlib.ocean.types import env_types
from pufferlib.play.keys import KeyMap, keys_for

DOCS = ROOT / "docs"
OCEAN, BINDINGS = DOCS / "ocean.md", DOCS / "gallery.md"
AGAIN = "scripts/gallery"
MADE = f"<!-- Made by {AGAIN}; change that, not this. -->"


def ocean_names() -> list[str]:
    """Ocean's environments, in C or in Python."""
    return sorted([*ocean.names(), *ocean.python_names()])


def binding_names() -> list[str]:
    """The bindings whose packages can be had."""
    return [facts.name for facts in registry.binding_facts().values() if not facts.unavailable]


def write() -> None:
    """Write the pages."""
    for page, text in _texts().items():
        page.write_text(text, encoding="utf-8")


def problems() -> list[str]:
    """Compare the pages with what ``write`` would leave; return a sentence for each difference."""
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
    drawn = {path_of(name) for name in (*ocean_names(), *binding_names())}
    found += [
        f"{path.relative_to(ROOT)} belongs to no environment; delete it"
        for path in (DOCS / "pictures").glob("*/*.png")
        if path not in drawn
    ]
    return found


def _texts() -> dict[Path, str]:
    return {OCEAN: _ocean_page(), BINDINGS: _bindings_page()}


def _picture(name: str) -> str:
    return f"![{name}]({path_of(name).relative_to(DOCS)})"


# ---- Ocean -------------------------------------------------------------------------------------------


def _ocean_page() -> str:
    names = ocean_names()
    lines = [
        MADE,
        "# Ocean",
        "",
        f"{len(ocean.names())} environments are written in C, {len(ocean.python_names())} in Python. Each picture is",
        "from the middle of a game, most of which are played at random. Numbers are those of the default parameters:",
        "`help(pufferlib.ocean.Pong)` lists these, and the comment at the top of `pufferlib/ocean/pong/pong.h` has the",
        "rules. [See, film and play](render.md) says more about pictures and keys.",
        "",
        " · ".join(f"[{name}](#{name})" for name in names),
        "",
    ]
    for name in names:
        lines += [f"## {name}", "", _picture(name), "", ocean.about(name), "", *_facts_of(name), ""]
    return "\n".join(lines)


def _facts_of(name: str) -> list[str]:
    env = pufferlib.make(name)
    try:
        rows = [("Observation", _space(env.single_observation_space)), ("Actions", _space(env.single_action_space))]
        if name in ocean.names():
            rows.append(("Agents in a game", str(env.num_agents)))
            rows.append(("Memory of a game", f"{env.game_bytes:,} bytes"))
            rows += [("Metrics", "; ".join(f"`{key}`: {about}" for key, about in env_types()[name].metrics.items()))]
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
        "One environment of each [binding](bindings.md), after some steps at random.",
        "",
    ]
    for name in binding_names():
        if not path_of(name).exists():
            continue
        facts = registry.binding_facts()[name]
        lines += [f"## {name}", "", _picture(name), "", f"`{name}/{facts.example}`: {facts.about}", ""]
    return "\n".join(lines)
