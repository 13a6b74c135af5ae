"""Contestants of baselines.py. Each returns the seconds until PPO reaches a score on a task, or None after a limit."""

import functools
import time
from collections import deque
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn
from trainers import run

EPISODES = 20  # the score is the mean over so many

# Tuned settings of rl-baselines3-zoo for PPO, hyperparams/ppo.yml. "lin" schedules fall to 0.
SIZES = {"pi": [256, 256], "vf": [256, 256]}
WIDE = {"ortho_init": False, "log_std_init": -2, "activation_fn": nn.ReLU, "net_arch": SIZES}
LANDER = {
    "n_envs": 16, "n_timesteps": 1_000_000, "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999,
    "n_epochs": 4, "ent_coef": 0.01,
}  # fmt: skip
ZOO: dict[str, dict[str, Any]] = {
    "classic/CartPole-v1": {
        "n_envs": 8, "n_timesteps": 100_000, "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98,
        "n_epochs": 20, "learning_rate": "lin_0.001", "clip_range": "lin_0.2",
    },
    "classic/Pendulum-v1": {
        "n_envs": 4, "n_timesteps": 100_000, "n_steps": 1024, "gae_lambda": 0.95, "gamma": 0.9, "n_epochs": 10,
        "learning_rate": 1e-3, "use_sde": True, "sde_sample_freq": 4,
    },
    "box2d/LunarLander-v3": LANDER,
    "box2d/LunarLanderContinuous-v3": LANDER,
    "box2d/BipedalWalker-v3": {
        "n_envs": 32, "n_timesteps": 5_000_000, "normalize": True, "n_steps": 2048, "batch_size": 64,
        "gamma": 0.999, "n_epochs": 10, "learning_rate": 3e-4, "clip_range": 0.18,
    },
    "mujoco/Ant-v5": {"n_envs": 1, "n_timesteps": 1_000_000, "normalize": True},
    "mujoco/HalfCheetah-v5": {
        "n_envs": 1, "n_timesteps": 1_000_000, "normalize": True, "n_steps": 512, "batch_size": 64, "gae_lambda": 0.92,
        "gamma": 0.98, "n_epochs": 20, "learning_rate": 2.0633e-5, "ent_coef": 0.000401762, "clip_range": 0.1,
        "max_grad_norm": 0.8, "vf_coef": 0.58096, "policy_kwargs": WIDE,
    },
    "mujoco/Hopper-v5": {
        "n_envs": 1, "n_timesteps": 1_000_000, "normalize": True, "n_steps": 512, "batch_size": 32, "gae_lambda": 0.99,
        "gamma": 0.999, "n_epochs": 5, "learning_rate": 9.80828e-5, "ent_coef": 0.00229519, "clip_range": 0.2,
        "max_grad_norm": 0.7, "vf_coef": 0.835671, "policy_kwargs": WIDE,
    },
    "minigrid/MiniGrid-DoorKey-5x5-v0": {
        "n_envs": 8, "n_timesteps": 100_000, "normalize": True, "n_steps": 128, "batch_size": 64, "n_epochs": 10,
        "learning_rate": 2.5e-4,
    },
    "atari/pong": {
        "n_envs": 8, "n_timesteps": 10_000_000, "n_steps": 128, "batch_size": 256, "n_epochs": 4,
        "learning_rate": "lin_0.00025", "clip_range": "lin_0.1", "ent_coef": 0.01,
    },
}  # fmt: skip


class Clock:
    """Clock of a training, with the scores of its last episodes.

    Args:
        score: Score to reach.
        limit_s: Maximum time in seconds.
    """

    def __init__(self, score: float, limit_s: float) -> None:
        self._score, self._limit_s, self._start = score, limit_s, time.perf_counter()
        self._scores: deque[float] = deque(maxlen=EPISODES)
        self.seconds: float | None = None  # until the score was reached

    def add(self, score: float) -> None:
        """Add the score of an episode."""
        self._scores.append(score)
        if self.seconds is None and len(self._scores) == EPISODES and np.mean(self._scores) >= self._score:
            self.seconds = time.perf_counter() - self._start

    @property
    def is_over(self) -> bool:
        """True if the score was reached or the time is up."""
        return self.seconds is not None or time.perf_counter() - self._start > self._limit_s


def ours_to_score(task: str, score: float, limit_s: float, seed: int) -> float | None:
    """Train with the settings of `puffer train TASK`."""
    from pufferlib.training import Logger, Trainer, load_config  # noqa: F401  # imports count for no contestant

    clock = Clock(score, limit_s)

    class Episodes(Logger):
        def log(self, metrics: dict[str, float]) -> None:
            pass

        def log_episodes(self, episodes: list[dict[str, float]]) -> None:
            for episode in episodes:
                clock.add(episode["score"])

        def close(self) -> None:
            pass

    config = load_config(task, {"train.device": "cpu", "train.seed": seed, "train.checkpoint_interval": 0})
    with run(config, loggers=[Episodes()]) as trainer:
        while not clock.is_over and trainer.agent_steps < config.train.total_timesteps:
            trainer.step()
    return clock.seconds


def sb3_to_score(task: str, score: float, limit_s: float, seed: int) -> float | None:
    """Train with Stable-Baselines3 and the settings of rl-baselines3-zoo."""
    from stable_baselines3.common.callbacks import BaseCallback

    clock = Clock(score, limit_s)

    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    clock.add(info["episode"]["r"])
            return not clock.is_over

    model = sb3_model(task, seed)
    with closing(model.get_env()):
        model.learn(ZOO[task]["n_timesteps"], Stop())
    return clock.seconds


def sb3_scores(task: str, steps: int, seed: int, episodes: int) -> dict[str, float]:
    """Train as `sb3_to_score` for a number of steps. Return the mean scores of greedy and of sampled actions."""
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecNormalize

    model = sb3_model(task, seed)
    model.learn(steps)
    with closing(model.get_env()) as envs:
        envs.seed(seed + 1_000)
        if isinstance(envs, VecNormalize):
            envs.training = envs.norm_reward = False
        return {
            way: float(evaluate_policy(model, envs, episodes, deterministic=way == "greedy")[0])
            for way in ("greedy", "sampled")
        }


def sb3_model(task: str, seed: int) -> Any:
    """Return a learner of Stable-Baselines3 with its environments and the settings of rl-baselines3-zoo."""
    from stable_baselines3 import PPO

    settings = dict(ZOO[task])
    envs = sb3_envs(task, settings.pop("n_envs"), settings.pop("normalize", False), seed)
    del settings["n_timesteps"]
    options = {key: schedule(value) for key, value in settings.items()}
    policy = "CnnPolicy" if task == "atari/pong" else "MlpPolicy"
    return PPO(policy, envs, seed=seed, device="cpu", **options)


def schedule(value: Any) -> Any:
    """Return a function of the remaining progress for "lin_0.001", and any other value unchanged."""
    if not (isinstance(value, str) and value.startswith("lin_")):
        return value
    start = float(value.removeprefix("lin_"))
    return lambda progress: progress * start


def sb3_envs(task: str, count: int, is_normalized: bool, seed: int) -> Any:
    """Make the environments as rl-baselines3-zoo does."""
    from stable_baselines3.common.atari_wrappers import AtariWrapper
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecNormalize

    make = functools.partial(make_env, task)
    if task == "atari/pong":
        envs = make_vec_env(make, count, seed, wrapper_class=AtariWrapper, vec_env_cls=SubprocVecEnv)
        return VecFrameStack(envs, 4)
    envs = make_vec_env(make, count, seed)
    return VecNormalize(envs, gamma=ZOO[task].get("gamma", 0.99)) if is_normalized else envs


def make_env(task: str) -> Any:
    """Make a Gymnasium environment, without preprocessing of images."""
    if task == "atari/pong":
        import ale_py

        gymnasium.register_envs(ale_py)
        return gymnasium.make("ALE/Pong-v5", frameskip=1)
    name = task.rpartition("/")[2]
    if task.startswith("minigrid/"):
        import minigrid

        gymnasium.register_envs(minigrid)
        return minigrid.wrappers.FlatObsWrapper(gymnasium.make(name))
    return gymnasium.make(name)


class Networks(nn.Module):
    """Separate networks of actor and critic, or one of Mnih et al. (2015) for images, as CleanRL publishes them."""

    def __init__(self, observation: Any, action: Any) -> None:
        super().__init__()
        self.is_discrete = isinstance(action, gymnasium.spaces.Discrete)
        outputs = int(action.n if self.is_discrete else np.prod(action.shape))
        if len(observation.shape) == 3:
            self.body: nn.Module = nn.Sequential(
                *(layer(nn.Conv2d(4, 32, 8, 4)), nn.ReLU(), layer(nn.Conv2d(32, 64, 4, 2)), nn.ReLU()),
                *(layer(nn.Conv2d(64, 64, 3)), nn.ReLU(), nn.Flatten(), layer(nn.Linear(3136, 512)), nn.ReLU()),
            )
            self.actor: nn.Module = layer(nn.Linear(512, outputs), 0.01)
            self.critic: nn.Module = layer(nn.Linear(512, 1), 1.0)
        else:
            size = int(np.prod(observation.shape))
            self.body = nn.Flatten()
            self.actor, self.critic = perceptron(size, outputs, 0.01), perceptron(size, 1, 1.0)
        self.log_std = nn.Parameter(torch.zeros(outputs))

    def forward(self, observations: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """Return the distributions of actions, and values ``(rows,)``."""
        features = self.body(observations / 255 if observations.dtype == torch.uint8 else observations)
        params, values = self.actor(features), self.critic(features)[:, 0]
        if self.is_discrete:
            return torch.distributions.Categorical(logits=params), values
        normal = torch.distributions.Normal(params, self.log_std.exp().expand_as(params))
        return torch.distributions.Independent(normal, 1), values


def layer(module: Any, scale: float = 2**0.5) -> Any:
    """Initialize a layer orthogonally, and return it."""
    nn.init.orthogonal_(module.weight, scale)
    nn.init.zeros_(module.bias)
    return module


def perceptron(inputs: int, outputs: int, scale: float) -> nn.Module:
    """Return a network of two hidden layers of 64 units."""
    hidden = (layer(nn.Linear(inputs, 64)), nn.Tanh(), layer(nn.Linear(64, 64)), nn.Tanh())
    return nn.Sequential(*hidden, layer(nn.Linear(64, outputs), scale))


def cleanrl_envs(task: str, count: int) -> Any:
    """Make the environments with the wrappers of CleanRL's scripts."""

    def make() -> Any:
        env = gymnasium.wrappers.RecordEpisodeStatistics(make_env(task))
        if task == "atari/pong":
            env = gymnasium.wrappers.AtariPreprocessing(env, frame_skip=4)
            return gymnasium.wrappers.FrameStackObservation(env, 4)
        if isinstance(env.action_space, gymnasium.spaces.Box):
            env = gymnasium.wrappers.ClipAction(env)
            env = gymnasium.wrappers.NormalizeObservation(env)
            env = gymnasium.wrappers.TransformObservation(
                env, lambda observation: np.clip(observation, -10, 10), env.observation_space
            )
            env = gymnasium.wrappers.NormalizeReward(env, gamma=0.99)
            env = gymnasium.wrappers.TransformReward(env, lambda reward: float(np.clip(reward, -10, 10)))
        return env

    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    return gymnasium.vector.SyncVectorEnv([make] * count, autoreset_mode=mode)


def cleanrl_to_score(task: str, score: float, limit_s: float, seed: int) -> float | None:
    """Train with one loop in torch, with the settings that CleanRL publishes for this kind of task."""
    torch.manual_seed(seed)
    clock = Clock(score, limit_s)
    is_continuous, is_atari = task.startswith("mujoco/"), task == "atari/pong"
    count, steps, minibatches, epochs = (1, 2048, 32, 10) if is_continuous else (8 if is_atari else 4, 128, 4, 4)
    rate, entropy, clip = (3e-4, 0.0, 0.2) if is_continuous else (2.5e-4, 0.01, 0.1 if is_atari else 0.2)
    total = 10_000_000 if is_atari else 1_000_000 if is_continuous else 500_000
    with closing(cleanrl_envs(task, count)) as envs:
        net = Networks(envs.single_observation_space, envs.single_action_space)
        optimizer = torch.optim.Adam(net.parameters(), rate, eps=1e-5)
        observation = torch.as_tensor(envs.reset(seed=seed)[0])
        for update in range(total // (count * steps)):
            optimizer.param_groups[0]["lr"] = rate * (1 - update * count * steps / total)
            batch, observation = rollout(envs, net, observation, steps, clock)
            if clock.is_over:
                break
            size = count * steps // minibatches
            for _ in range(epochs):
                for chosen in torch.randperm(count * steps).split(size):
                    learn(net, optimizer, [values[chosen] for values in batch], clip, entropy)
    return clock.seconds


def rollout(envs: Any, net: Networks, observation: torch.Tensor, steps: int, clock: Clock) -> tuple[Any, torch.Tensor]:
    """Play ``steps`` steps. Return flat tensors for ``learn``, and the last observation."""
    kept: list[list[torch.Tensor]] = [[] for _ in range(6)]
    for _ in range(steps):
        with torch.no_grad():
            distribution, values = net(observation)
            action = distribution.sample()
        after, reward, terminal, truncation, infos = envs.step(action.numpy())
        ended = torch.as_tensor(terminal | truncation, dtype=torch.float32)
        moment = (observation, action, distribution.log_prob(action), values, torch.as_tensor(reward).float(), ended)
        for list_, value in zip(kept, moment, strict=True):
            list_.append(value)
        if "final_info" in infos and "episode" in infos["final_info"]:
            for index in np.flatnonzero(infos["final_info"]["_episode"]):
                clock.add(float(infos["final_info"]["episode"]["r"][index]))
        observation = torch.as_tensor(after)
    observations, actions, log_probs, values, rewards, ends = (torch.stack(list_) for list_ in kept)
    with torch.no_grad():
        following = net(observation)[1]
    advantages, last = torch.zeros_like(rewards), torch.zeros_like(following)
    for step in reversed(range(steps)):
        error = rewards[step] + 0.99 * following * (1 - ends[step]) - values[step]
        last = error + 0.99 * 0.95 * (1 - ends[step]) * last
        advantages[step], following = last, values[step]
    flat = (observations, actions, log_probs, advantages, advantages + values, values)
    return [each.flatten(0, 1) for each in flat], observation


def learn(net: Networks, optimizer: Any, batch: list[torch.Tensor], clip: float, entropy: float) -> None:
    """Take one gradient step of PPO."""
    observations, actions, old, advantages, returns, before = batch
    distribution, values = net(observations)
    ratio = (distribution.log_prob(actions) - old).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = torch.min(advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)).mean()
    clipped = before + (values - before).clamp(-clip, clip)
    value_loss = 0.5 * torch.max((values - returns) ** 2, (clipped - returns) ** 2).mean()
    optimizer.zero_grad()
    (0.5 * value_loss - gain - entropy * distribution.entropy().mean()).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()


CASES = (ours_to_score, sb3_to_score, cleanrl_to_score)
