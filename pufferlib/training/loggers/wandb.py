"""Metrics for Weights & Biases."""

import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError, BindingMissing, PufferError
from pufferlib.machine.commands import in_image, way_to_install
from pufferlib.settings.config import WandbConfig
from pufferlib.training.loggers.base import Result

__all__ = ["WandbLogger", "check_account"]

PROJECT = "pufferlib"
TIMEOUT_S = 30.0  # maximum seconds to wait for the server
OFFLINE = "add --track.wandb.mode offline, which keeps the run on this machine until you send it with: wandb sync"


class WandbLogger:
    """Logger that sends each update to Weights & Biases, over agent steps, and at the end score, curve and video.

    The folder of the run keeps the run's id, so that a resumed run continues there as the same run.

    Args:
        folder: Folder of the run. A folder ``wandb/`` is created in it.
        settings: Project, entity, group and mode.
        name: Name of the run at Weights & Biases.
        tags: Tags of the run.
        group: Group of the run, unless ``settings`` has one.
        config: Nested settings to show on the page of the run.

    Raises:
        APIUsageError: The mode is online, and there is no account.
        BindingMissing: wandb is not installed.
        PufferError: The server cannot be reached, or rejects the run.
    """

    def __init__(
        self,
        folder: Path,
        settings: WandbConfig | None = None,
        *,
        name: str = "",
        tags: Sequence[str] = (),
        group: str = "",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        settings = settings or WandbConfig()
        check_account(settings)
        import wandb

        try:
            self.run = wandb.init(
                project=settings.project or os.environ.get("WANDB_PROJECT") or PROJECT,
                entity=settings.entity or None,
                group=settings.group or os.environ.get("WANDB_RUN_GROUP") or group or None,
                name=name or folder.name,
                tags=list(tags) or None,
                config=dict(config or {}),
                dir=str(folder),
                id=_id_of(folder),
                resume="allow",
                mode=_mode(settings),
                reinit="create_new",  # one process may train several seeds, each as a run
                settings=wandb.Settings(silent=True, console="off", init_timeout=TIMEOUT_S),
            )
        except wandb.Error as error:
            reason = str(error).partition("\n")[0]
            raise PufferError(f"wandb: the run could not be started: {reason}; {OFFLINE}") from error
        self.run.define_metric("*", step_metric="agent_steps")

    @property
    def place(self) -> str:
        """Address of the run's page, or the command that uploads the run."""
        if self.run.settings.mode == "offline":
            return f"wandb sync {shlex.quote(os.path.relpath(self.run.settings.sync_dir))}"
        return str(self.run.url or "")

    def log(self, metrics: dict[str, float]) -> None:
        """Send the metrics of an update."""
        self.run.log(metrics)

    def finish(self, result: Result) -> None:
        """Send the result: its values into the summary, the images into panels."""
        import wandb

        images: dict[str, Any] = {}
        if result.curve.exists():
            images["learning curve"] = wandb.Image(str(result.curve))
        if result.video:
            images["evaluation"] = wandb.Video(str(result.video), format="mp4")
        self.run.log(images)
        self.run.summary.update({key: value for key, value in result.scores.items() if value is not None})

    def close(self) -> None:
        """Send all waiting data, and end the run. This may be called twice."""
        self.run.finish()


def check_account(settings: WandbConfig) -> None:
    """Raise an error if runs cannot be sent with these settings, as far as this is known without the network.

    Raises:
        APIUsageError: There is no account.
        BindingMissing: wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise BindingMissing(f'wandb: the logger "wandb" needs it; {way_to_install("track")}') from error
    if _mode(settings) == "online" and not wandb.login(prompt=False, verify=False):
        if in_image():
            raise APIUsageError(
                "wandb: track.wandb.mode online needs an account, and WANDB_API_KEY is not set in this container; set "
                f"it on the host or in .env (docker run: -e WANDB_API_KEY), or {OFFLINE}"
            )
        raise APIUsageError(
            "wandb: track.wandb.mode online needs an account, and no key was found in WANDB_API_KEY or ~/.netrc; run: "
            f"wandb login, or {OFFLINE}"
        )


def _mode(settings: WandbConfig) -> Any:
    if settings.mode != "auto":
        return settings.mode
    return os.environ.get("WANDB_MODE") or "online"


def _id_of(folder: Path) -> str:
    """Return the id of the run at Weights & Biases, which is stored in its folder."""
    file = folder / "wandb" / "id.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(secrets.token_hex(4) + "\n")
    return file.read_text().strip()
