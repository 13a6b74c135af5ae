"""``puffer eval``: how good a trained agent is, beside random play."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.cli.arguments import Parser
from pufferlib.cli.console import say, style
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.train.config import Config, load_config
from pufferlib.train.film import Film
from pufferlib.train.runs import RUNS, find_run, load_policy
from pufferlib.train.text import plural, short

if TYPE_CHECKING:
    from pufferlib.models import Policy
    from pufferlib.train.evaluate import EvalResult

__all__ = ["Verdict", "judge", "run"]

PROG = "puffer eval"
ABOUT = """Evaluate a trained agent against random play: puffer eval RUN, puffer eval CHECKPOINT,
or puffer eval ENVIRONMENT for the latest run of it.

  --video PATH     film the first episode as an mp4
  --runs FOLDER    where to look for the latest run (default: runs)"""


@dataclass(frozen=True)
class Verdict:
    """An agent's evaluation beside random play's."""

    env_name: str
    agent: "EvalResult"
    random: "EvalResult"
    greedy: bool
    film: Film | None

    @property
    def way(self) -> str:
        """How the agent chose its actions."""
        return "greedily" if self.greedy else "with sampled actions"

    def sentence(self) -> str:
        """The scores, in words."""
        agent, unfinished = self.agent, ""
        if agent.unfinished:
            unfinished = f" ({agent.unfinished} more were cut off at eval.max-steps)"
        score = style(f"{short(agent.score_mean)} ± {short(agent.score_std)}", "good")
        return (
            f"{self.env_name}: score {score} over {plural(agent.episodes, 'episode')}{unfinished}, played {self.way}; "
            f"random play: {short(self.random.score_mean)}"
        )

    def figures(self) -> dict[str, Any]:
        """The scores, as ``summary.json`` has them."""
        return {
            "score": self.agent.score_mean,
            "score_std": self.agent.score_std,
            "episode_length": self.agent.episode_length,
            "greedy": self.greedy,
            "episodes": self.agent.episodes,
            "unfinished_episodes": self.agent.unfinished,
            "random_score": self.random.score_mean,
            "random_score_std": self.random.score_std,
            **(self.film.figures() if self.film else {}),
        }


def run(argv: list[str]) -> int:
    """Evaluate what ``argv`` names."""
    from pufferlib.cli.flags import parse_config

    target, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = Parser(PROG, add_help=False)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--runs", type=Path, default=RUNS)
    options, flags = parser.parse_known_args(argv)
    if not target and ("--help" in flags or "-h" in flags):
        parse_config(PROG, load_config("RUN"), flags, ABOUT)
    if not target:
        example = as_typed("puffer eval breakout")
        raise UsageError(f"{PROG}: name a run, a checkpoint or an environment, for example: {example}")
    if options.video and (options.video.is_dir() or not options.video.parent.is_dir()):
        raise UsageError(f"{PROG}: --video must be a file in a folder that exists, got {options.video}")
    found = find_run(PROG, target, options.runs)
    config = parse_config(PROG, Config.load(found.config), flags, ABOUT, parser.flags)
    episodes = plural(config.eval.episodes, "episode")
    say(f"{style(config.env_name, 'bold')}: playing {episodes} with {found.checkpoint}")
    policy = load_policy(config, found)
    verdict = judge(config, policy, options.video)
    say(verdict.sentence())
    if verdict.film and (about := verdict.film.about()):
        say(f"video: {verdict.film.path} ({about})")
    say(f"Watch it: {style(as_typed(f'puffer play --watch {found.argument}'), 'accent')}")
    return 0


def judge(config: Config, policy: "Policy", video: Path | None) -> Verdict:
    """Evaluate ``policy`` and random play; film the first episode if the environment draws pictures.

    Args:
        config: The environment, and how long to play.
        policy: The agent.
        video: The mp4 file; None films nothing.
    """
    from pufferlib.train.evaluate import evaluate

    film = Film(video, config.eval.video_seconds) if video else None
    with film or contextlib.nullcontext():
        agent = evaluate(config, policy, record=film)
    return Verdict(config.env_name, agent, evaluate(config, None), config.eval.greedy, film)
