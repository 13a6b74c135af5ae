"""Games in the browser: environments in C and the agents that play them, compiled to WebAssembly."""

import base64
import html
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib import ocean, registry
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.exports.c_source import c_files
from pufferlib.exports.trained import open_trained
from pufferlib.machine.commands import as_typed
from pufferlib.native.compiler import HEADERS, find_web_compiler
from pufferlib.native.shared_object import FLAGS
from pufferlib.ocean.env import OceanEnv
from pufferlib.ocean.types import EnvType
from pufferlib.play.controls import keys_for
from pufferlib.registry import creators
from pufferlib.render.motion import Motion
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.spaces import Space
from pufferlib.web.server import read_static

__all__ = ["WebGame", "build_game"]

PROGRAM = HEADERS / "puffer_page.c"
STACK_BYTES = 1 << 20
WEB_FLAGS = (*FLAGS, "-O2", "-mexec-model=reactor", f"-Wl,-z,stack-size={STACK_BYTES}", "-s")


@dataclass(frozen=True)
class WebGame:
    """A game compiled for the browser.

    Attributes:
        facts: Everything that the page knows about the game, as JSON types.
        code: WebAssembly module with the game and its agent.
    """

    facts: Mapping[str, Any]
    code: bytes

    def page(self) -> str:
        """Return an HTML page with the game, which needs no other file and no server."""
        parts = {
            "title": html.escape(self.facts["name"]),
            "about": html.escape(self.facts["about"]),
            "style": read_static("base.css").decode(),
            "script": read_static("game.js").decode(),
            "facts": json.dumps(self.facts).replace("</", "<\\/"),
            "code": base64.b64encode(self.code).decode(),
        }
        page = read_static("game.html").decode()
        for name, text in parts.items():
            page = page.replace(f"@{name}@", text)
        return page


def build_game(where: str, env: str, keywords: Mapping[str, Any] | None = None, run: Run | None = None) -> WebGame:
    """Compile an environment in C, and the policy of a run that plays it.

    Args:
        where: Prefix of error messages.
        env: Name of the environment, or path of a C file.
        keywords: Keyword arguments of the environment. They replace those of the run.
        run: Run whose policy plays. None plays random actions.

    Raises:
        UsageError: The environment is not in C, or draws no images.
        APIUsageError: The environment has no such keyword, does not compile, or the policy cannot be exported to C.
        PufferError: There is no compiler for the web.
    """
    creator = registry.env_creator(env, where)
    env_type, source = ocean.type_made_by(creator), ocean.source_made_by(creator)
    if env_type is None or source is None:
        raise UsageError(
            f"{where}: expected an environment in C, got {env}, which a browser cannot run; "
            f"{as_typed('puffer list')} shows those in C, and {as_typed('puffer new')} writes one of your own"
        )
    compiler = find_web_compiler(where)
    name = registry.full_name(env)
    config = run.settings() if run else None
    if run and config and config.env_name != name:
        raise UsageError(f"{where}: {run.folder} is a run of {config.env_name}, not of {name}")
    keywords = creators.single_game(creator, {**(config.env if config else {}), **(keywords or {})})
    game: OceanEnv = creator(**{**keywords, "pixels": None})
    with game:
        facts = _facts(where, game, env_type, keywords)
    with tempfile.TemporaryDirectory(prefix="puffer-web-") as place:
        folder = Path(place)
        sources: list[str | Path] = [PROGRAM, source, f"-DPUFFER_PAGE_ENV={env_type.name}_env"]
        if run and config:
            agent = _write_agent(where, folder, run, replace(config, env=keywords), game)
            sources += [folder / "agent.c", f"-I{folder}", f"-DPUFFER_PAGE_AGENT={agent}"]
            facts["agent"] = True
        done = compiler.run([*WEB_FLAGS, *sources, "-o", folder / "game.wasm"])
        if done.returncode:
            raise APIUsageError(f"{source}: it cannot be compiled for the web:\n{done.stderr.strip()}")
        return WebGame(facts, (folder / "game.wasm").read_bytes())


def _facts(where: str, env: OceanEnv, env_type: EnvType, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a game for its page."""
    env.reset()
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    if (picture == picture[0, 0]).all():
        raise UsageError(
            f"{where}: {env_type.name} has no images: the first one has a single color; draw the state in "
            f"{env_type.name}_draw"
        )
    space, motion = env.single_action_space, Motion(env)
    own = {parameter.name: keywords[parameter.name] for parameter in env_type.parameters if parameter.name in keywords}
    values = [value.decode() if isinstance(value, bytes) else value for value in env_type.in_c(own)]
    return {
        "name": env_type.name,
        "about": env_type.about,
        "agent": False,
        "parameters": values,
        "width": picture.shape[1],
        "height": picture.shape[0],
        "agents": env.num_agents,
        "observationBytes": env.observations.nbytes,
        "actions": _actions(space),
        "keys": [[key.name, key.component, key.value, key.about] for key in keys_for(space, env_type.keys)],
        "areas": bool(env.areas()),
        "metrics": list(env_type.metrics),
        "framesPerSecond": motion.fps,
        "framesPerStep": env.frames_per_step,
        "picturesPerStep": motion.pictures_per_step,
    }


def _actions(space: Space) -> dict[str, Any]:
    """Return the sizes of the parts of a discrete action, or the number of components and the limit of a Box."""
    if isinstance(space, Box):
        return {"count": int(np.prod(space.shape)), "limit": float(space.high.max())}
    assert isinstance(space, Discrete | MultiDiscrete), space
    sizes = [int(space.n)] if isinstance(space, Discrete) else space.nvec.ravel().tolist()
    return {"count": len(sizes), "sizes": sizes}


def _write_agent(where: str, folder: Path, run: Run, config: Config, env: OceanEnv) -> str:
    """Write the policy of a run to agent.c and agent.h, and return the prefix of its names in C."""
    with open_trained(config, run) as trained:
        if trained.row_bytes * env.num_agents != env.observations.nbytes:
            raise APIUsageError(
                f"{where}: the agent of {run.argument} observes something else than the game writes, such as images "
                "(env.pixels); train one without it"
            )
        try:
            source, header = c_files(trained)
        except APIUsageError as error:
            raise APIUsageError(
                f"{where}: the agent of {run.argument} cannot be compiled: {error.__cause__ or error}; --no-agent "
                "makes a page without it"
            ) from error
        (folder / "agent.c").write_text(source, "utf-8")
        (folder / "agent.h").write_text(f"{header}\n", "utf-8")
        return trained.name
