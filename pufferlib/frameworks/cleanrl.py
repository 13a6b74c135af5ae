"""Adapters between policies and CleanRL agents, in both directions.

Source: Huang et al., "CleanRL: High-quality Single-file Implementations of Deep Reinforcement Learning Algorithms"
(2022). Shapes follow its ppo.py, ppo_atari.py, ppo_continuous_action.py and ppo_atari_lstm.py.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution

from pufferlib import models
from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError
from pufferlib.models import State

__all__ = ["AgentPolicy", "Policy", "RecurrentPolicy"]

LSTMState = tuple[Tensor, Tensor]  # hidden and cell, each (1, rows, hidden_size)
Sampled = tuple[Tensor, Tensor, Tensor, Tensor]  # action, log probability, entropy, value


class CleanRLPolicy(nn.Module):
    """Feed-forward policy as an agent of ppo.py, ppo_atari.py and ppo_continuous_action.py.

    Args:
        policy: Policy of ``pufferlib.models``, or any module that returns logits and values. Logits are a tensor
            ``(rows, actions)``, a sequence of such tensors for actions with several parts, or a
            ``torch.distributions.Distribution``.

    Raises:
        APIUsageError: The policy is recurrent.
    """

    def __init__(self, policy: nn.Module) -> None:
        super().__init__()
        if isinstance(policy, models.Policy) and policy.initial_state(1):
            raise APIUsageError(
                f"frameworks.cleanrl.Policy: policy must be one without memory, got {type(policy).__name__}; "
                "use RecurrentPolicy, and the loop of ppo_atari_lstm.py"
            )
        self.policy = policy

    def get_value(self, x: Tensor) -> Tensor:
        """Return values ``(rows, 1)`` of observations ``(rows, ...)``, in the dtype of their space or in float32."""
        return self._evaluate(x)[1].reshape(-1, 1)

    def get_action_and_value(self, x: Tensor, action: Tensor | None = None) -> Sampled:
        """Sample an action for each row of observations, or evaluate the given actions.

        Returns:
            Actions, log probabilities ``(rows,)``, entropies ``(rows,)`` and values ``(rows, 1)``.
        """
        outputs, values = self._evaluate(x)
        if isinstance(self.policy, models.Policy):
            sampled = _sampled(self.policy, outputs, action)
        else:
            sampled = _sampled_plain(outputs, action)
        return (*sampled, values.reshape(-1, 1))

    def _evaluate(self, x: Tensor) -> tuple[Any, Tensor]:
        if isinstance(self.policy, models.Policy):
            return self.policy.forward_eval(x.to(self.policy.observation_dtype))
        outputs, values = self.policy(x)
        return outputs, values


Policy = CleanRLPolicy  # public name in this module, not to be confused with pufferlib.models.Policy


class RecurrentPolicy(nn.Module):
    """Policy with an LSTM as an agent of ppo_atari_lstm.py.

    Args:
        policy: ``LSTMWrapper`` of ``pufferlib.models``.

    Attributes:
        lstm: Object with ``num_layers`` and ``hidden_size``. The training loop creates the initial state from them.

    Raises:
        APIUsageError: The policy is not an ``LSTMWrapper``, or its critic has an LSTM of its own.
    """

    def __init__(self, policy: models.LSTMWrapper) -> None:
        super().__init__()
        if not isinstance(policy, models.LSTMWrapper):
            raise APIUsageError(
                f"frameworks.cleanrl.RecurrentPolicy: policy must be an LSTMWrapper, got {type(policy).__name__}; "
                "wrap it with pufferlib.models.LSTMWrapper, or use Policy"
            )
        if policy.critic is not None:
            raise APIUsageError(
                "frameworks.cleanrl.RecurrentPolicy: actor and critic must share one LSTM, got separate networks; make "
                "the policy with networks='shared'"
            )
        self.policy = policy
        self.lstm = _LSTMSizes(policy.hidden_size)

    def get_value(self, x: Tensor, lstm_state: LSTMState, done: Tensor) -> Tensor:
        """Return values ``(steps * rows, 1)``. See ``get_action_and_value`` for the arguments."""
        _, values, _ = self._evaluate(x, lstm_state, done)
        return values.reshape(-1, 1)

    def get_action_and_value(
        self, x: Tensor, lstm_state: LSTMState, done: Tensor, action: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, LSTMState | None]:
        """Sample an action for each row of observations, or evaluate the given actions.

        Args:
            x: Observations of one or more steps, ``(steps * rows, ...)``, ordered by step.
            lstm_state: State before the first step, two tensors ``(1, rows, hidden_size)``.
            done: Episode starts, ``(steps * rows,)``. 1 if an episode starts with this observation.
            action: Actions to evaluate, in the order of ``x``. None samples them.

        Returns:
            Actions, log probabilities, entropies, values ``(steps * rows, 1)`` and the state after the step. The state
            is None after more than one step, because training loops do not use it.
        """
        params, values, after = self._evaluate(x, lstm_state, done)
        return (*_sampled(self.policy, params, action), values.reshape(-1, 1), after)

    def _evaluate(self, x: Tensor, lstm_state: LSTMState, done: Tensor) -> tuple[Tensor, Tensor, LSTMState | None]:
        h, c = (part[0] for part in lstm_state)
        observations = x.to(self.policy.observation_dtype).view(-1, len(h), *x.shape[1:])
        starts = done.view(-1, len(h)) > 0
        if len(observations) > 1:
            params, values = self.policy(observations, {"lstm_h": h, "lstm_c": c}, starts)
            return params.flatten(0, 1), values, None
        keep = (~starts[0]).unsqueeze(-1)
        state = {"lstm_h": h * keep, "lstm_c": c * keep}
        params, values = self.policy.forward_eval(observations[0], state)
        return params, values, (state["lstm_h"][None], state["lstm_c"][None])


class _LSTMSizes:
    num_layers = 1

    def __init__(self, hidden_size: int) -> None:
        self.hidden_size = hidden_size


class AgentPolicy(models.Policy):
    """CleanRL agent as a policy for ``pufferlib.training.Trainer``.

    ``get_action_and_value`` is called as in CleanRL's own training loop. A forward hook records the output of the
    agent's head: ``actor`` (logits), or ``actor_mean`` together with ``actor_logstd``. So any preprocessing inside the
    agent still applies.

    Args:
        env: Environment with the spaces of one agent. Discrete actions need ``actor``, Box actions ``actor_mean``.
        agent: CleanRL agent. If it has an ``lstm``, it is called as in ppo_atari_lstm.py.

    Raises:
        APIUsageError: The agent has no such head, or no ``get_action_and_value``.
    """

    def __init__(self, env: HasSpaces, agent: nn.Module) -> None:
        super().__init__(env, hidden_size=1)
        del self.decoder  # the agent has its own heads
        name = "actor_mean" if self.is_continuous else "actor"
        head = getattr(agent, name, None)
        if not isinstance(head, nn.Module) or not hasattr(agent, "get_action_and_value"):
            raise APIUsageError(
                f"frameworks.cleanrl.AgentPolicy: an agent for {env.single_action_space} must have a module {name} "
                f"and a method get_action_and_value, got {type(agent).__name__}; call its last layer {name}"
            )
        if self.is_continuous:
            del self.log_std
        self.agent = agent
        head.register_forward_hook(self._record_head_output)
        self._lstm: Any = getattr(agent, "lstm", None)
        self._head_output: Tensor | None = None

    def _record_head_output(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        self._head_output = output

    def initial_state(self, num_agents: int, device: torch.device | str = "cpu") -> State:
        """Return ``lstm_h`` and ``lstm_c``, float32 ``(num_agents, hidden_size)``. Empty without an LSTM."""
        if self._lstm is None:
            return {}
        return {name: torch.zeros(num_agents, self._lstm.hidden_size, device=device) for name in ("lstm_h", "lstm_c")}

    def forward_eval(self, observations: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """See ``pufferlib.models.Policy.forward_eval``."""
        if self._lstm is None:
            params, values, _ = self._call(observations)
            return params, values
        state = self.initial_state(len(observations), observations.device) if state is None else state
        params, values, after = self._call(observations, _memory(state), observations.new_zeros(len(observations)))
        state["lstm_h"], state["lstm_c"] = after[0][0], after[1][0]
        return params, values

    def forward(
        self, observations: Tensor, state: State | None = None, episode_starts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """See ``pufferlib.models.Policy.forward``."""
        steps, rows = observations.shape[:2]
        flat = observations.flatten(0, 1)
        if self._lstm is None:
            params, values, _ = self._call(flat)
        else:
            state = self.initial_state(rows, observations.device) if state is None else state
            starts = flat.new_zeros(len(flat)) if episode_starts is None else episode_starts.flatten()
            params, values, _ = self._call(flat, _memory(state), starts)
        return params.view(steps, rows, -1), values.view(steps, rows)

    def _call(self, x: Tensor, *memory: Any) -> tuple[Tensor, Tensor, Any]:
        """Return params ``(rows, num_params)``, values ``(rows,)`` and the LSTM state, or None without an LSTM."""
        ours = self.distribution
        # Passing any action skips sampling, whose result is not used.
        none = torch.zeros(len(x), *ours.shape, dtype=ours.dtype, device=x.device)
        numbers = [part.float() if isinstance(part, Tensor) else part for part in memory]
        _, _, _, values, *after = self.agent.get_action_and_value(x.float(), *numbers, none)  # type: ignore[operator]
        params, self._head_output = self._head_output, None
        assert params is not None
        if self.is_continuous:
            params = torch.cat([params, self.agent.actor_logstd.expand_as(params)], -1)  # type: ignore[operator]
        return self._allowed(params, x), values.flatten(), after[0] if after else None


def _memory(state: State) -> LSTMState:
    return state["lstm_h"][None], state["lstm_c"][None]


def _sampled(policy: models.Policy, params: Tensor, action: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return an action, its log probability and the entropy for each row, by the distribution of ``policy``.

    CleanRL passes actions to the environment unchanged, so they have the start and the units of its action space.
    """
    distribution = policy.distribution
    start, scale = (
        torch.as_tensor(each, dtype=distribution.dtype, device=params.device)
        for each in (distribution.start, distribution.scale)
    )
    if action is None:
        chosen = distribution.sample(params, _generator(params.device))
    else:
        chosen = ((action - start) / scale).to(distribution.dtype)
    return start + scale * chosen, distribution.log_prob(params, chosen), distribution.entropy(params)


def _generator(device: torch.device) -> torch.Generator:
    """Return the generator that ``torch.manual_seed`` seeds."""
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator


def _sampled_plain(outputs: Any, action: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Do the same as ``_sampled`` for logits, a sequence of logits, or a distribution of torch."""
    if isinstance(outputs, Distribution | Tensor):
        one = Categorical(logits=outputs) if isinstance(outputs, Tensor) else outputs
        action = one.sample() if action is None else action
        return action, _summed(one.log_prob(action)), _summed(one.entropy())
    parts: list[Any] = [Categorical(logits=logits) for logits in outputs]
    action = torch.stack([part.sample() for part in parts], -1) if action is None else action
    log_probs = [part.log_prob(chosen) for part, chosen in zip(parts, action.unbind(-1), strict=True)]
    return action, torch.stack(log_probs).sum(0), torch.stack([part.entropy() for part in parts]).sum(0)


def _summed(per_part: Tensor) -> Tensor:
    """Reduce ``(rows,)`` or ``(rows, parts)`` to ``(rows,)``."""
    return per_part.flatten(1).sum(1) if per_part.ndim > 1 else per_part
