"""PettingZooPufferEnv, which has one row for each possible agent, alive or not."""

import functools
import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from pufferlib import APIUsageError, InvalidAgentError, vector
from pufferlib.buffers import allocate
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.wrappers import MeanOverAgents, MultiagentEpisodeStats, PadAgents
from tests.envs import ScriptedParallelEnv, alive

SPACE = Dict({"id": Discrete(9), "xy": Box(0, 100, (2,))})


def place(env, agent):
    return {"id": env.possible_agents.index(agent), "xy": np.full(2, 10 + env.count, np.float32)}


Arena = functools.partial(ScriptedParallelEnv, space=SPACE, observe=place)


def test_with_block_closes_the_environment():
    arena, closed = Arena(alive("a")), []
    arena.close = lambda: closed.append(arena)
    with PettingZooPufferEnv(arena):
        assert not closed
    assert closed == [arena]


def test_rows_are_in_the_order_of_possible_agents():
    env = PettingZooPufferEnv(Arena(alive("a", "b", "c"), alive("b", "a", "c"), info=lambda *_, fate: {"fate": fate}))
    observations, _ = env.reset()
    assert list(observations) == env.possible_agents == ["c", "a", "b"]
    assert env.observations.view(env.obs_dtype)["id"].ravel().tolist() == [0, 1, 2]
    assert env.agents == ["c", "a", "b"]
    assert (env.num_agents, env.observations.shape, env.driver_env) == (3, (3, 12), env)
    observations, rewards, terminations, truncations, infos = env.step(np.zeros(3, np.int64))
    for per_agent in (observations, rewards, terminations, truncations):
        assert list(per_agent) == ["c", "a", "b"]
    assert infos["a"] == {"fate": "alive"}
    np.testing.assert_array_equal(observations["a"], env.observations[1])
    assert rewards == {"c": 1.0, "a": 1.0, "b": 1.0}


def test_only_environments_in_a_batch_return_views_of_their_rows():
    script = [alive("a", "b")] * 3
    buf = allocate(Box(0, 255, (12,), np.uint8), Discrete(3), 3)
    for env in (PettingZooPufferEnv(Arena(*script)), PettingZooPufferEnv(Arena(*script), buf=buf)):
        calls = [env.reset()[0], env.step([0, 0, 0])[0], env.step([0, 0, 0])[0]]
        times = [shown["a"].view(env.obs_dtype)["xy"][0, 0] for shown in calls]
        assert times == ([12, 12, 12] if env.observations is buf["observations"] else [10, 11, 12])


def test_step_returns_rewards_unchanged():
    script, rewards = (alive("a", "b"), alive("a", "b")), {"a": 0.3, "b": 7}
    env = PettingZooPufferEnv(Arena(*script, reward=lambda env, agent: rewards[agent]))
    env.reset()
    assert env.step([0, 0, 0])[1] == {"c": 0, "a": 0.3, "b": 7}


def test_scalar_observations_are_returned():
    script = [alive("a", "b", "c")] * 2
    env = PettingZooPufferEnv(
        Arena(*script, space=Box(0, 10, ()), observe=lambda env, agent: np.float32(env.count + 1))
    )
    assert {float(observation) for observation in env.reset()[0].values()} == {1.0}
    assert {float(observation) for observation in env.step([0, 0, 0])[0].values()} == {2.0}


@pytest.mark.parametrize("echo", [False, True])
def test_absent_agents_are_padded(echo):
    env = PettingZooPufferEnv(
        Arena(
            alive("a", "b"),
            {"a": "dead", **alive("b")},
            {"b": "alive", "c": "alive"},
            {"b": "cut", "c": "dead"},
            echo=echo,
        )
    )
    env.reset()
    assert env.masks.tolist() == [False, True, True]
    assert not env.observations[0].any()
    env.step([0, 1, 2])
    assert env.env.got[-1] == {"a": 1, "b": 2}
    assert env.masks.tolist() == [False, True, True]
    assert env.terminals.tolist() == [False, True, False]
    assert env.rewards.tolist() == [0, 1, 1]
    assert env.observations[1].any()  # its last observation
    env.step({"b": np.int64(1)})
    assert env.masks.tolist() == [True, False, True]  # c has joined, a has left
    assert env.terminals.tolist() == [False, False, False]
    assert env.rewards.tolist() == [2, 0, 2]
    assert not env.observations[1].any()
    assert not env.done
    env.step({"b": 0, "c": 0, "a": 0})
    assert env.env.got[-1] == {"b": 0, "c": 0}
    assert env.terminals.tolist() == [True, False, False]
    assert env.truncations.tolist() == [False, False, True]
    assert env.done
    with pytest.raises(APIUsageError, match="no episode is running; call reset"):
        env.step([0, 0, 0])
    env.reset()
    assert env.masks.tolist() == [False, True, True]
    assert env.rewards.tolist() == [0, 0, 0]
    assert not env.terminals.any()


class Model:
    """Model of the rows of PettingZooPufferEnv in plain Python, for a ``script`` of ScriptedParallelEnv."""

    def __init__(self, script, names, echo):
        self.script, self.names, self.echo = script, names, echo
        self.acting = set(script[0])
        self.listed = set(script[0])

    def step(self, count):
        """Return reward, terminal, truncation and mask of each agent."""
        fate = self.script[count]
        if self.echo:
            fate = {**dict.fromkeys(self.names, "dead"), **fate}
        listed = {name for name, how in fate.items() if how == "alive"}
        here = self.acting | (listed - self.listed)
        rows = []
        for name in self.names:
            how = fate.get(name, "dead") if name in here else None
            cut = how == "cut"
            rows.append((float(count) * (name in here and name in fate), how == "dead", cut, name in here))
        self.listed = listed
        self.acting = {name for name, row in zip(self.names, rows, strict=True) if row[3] and not row[1] and not row[2]}
        return rows


@pytest.mark.parametrize("in_rows", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_rows_match_a_plain_python_model(seed, in_rows):
    random = np.random.default_rng(seed)
    names = list("cabed")
    fates = ["alive", "alive", "alive", "dead", "cut", None]

    def random_fates():
        some = [names[i] for i in random.permutation(5)]
        return {name: how for name in some if (how := fates[random.integers(6)])}

    echo = bool(seed % 2)
    script = [alive(*(random_fates() or "a")), *[random_fates() for _ in range(8)]]
    vecenv = vector.make(
        functools.partial(
            PettingZooPufferEnv, env_creator=Arena, env_args=script, env_kwargs={"names": names, "echo": echo}
        ),
        backend="Serial",
        autoreset="disabled",
    )
    env, model = vecenv.envs[0], Model(script, names, echo)
    vecenv.reset()
    assert env.masks.tolist() == [name in script[0] for name in names]
    for count in range(1, 9):
        if env.done:
            break
        if in_rows:
            vecenv.step(np.full(5, 1))
            returned = None
        else:
            *returned, _ = env.step(dict.fromkeys(env.agents, 1))
        rows = model.step(count)
        assert set(env.env.got[-1].values()) == {1}
        for name, got in zip(("rewards", "terminals", "truncations", "masks"), zip(*rows, strict=True), strict=True):
            assert getattr(env, name).tolist() == list(got), name
        assert set(env.agents) == model.acting
        seen = env.observations.view(env.obs_dtype)["xy"][:, 0, 0]
        reported = set(names) if echo else set(script[count])
        assert seen.tolist() == [
            10.0 + count if row[3] and name in reported else 0 for name, row in zip(names, rows, strict=True)
        ]
        if returned:
            assert [list(dict(zip(names, part, strict=True)).values()) for part in zip(*rows, strict=True)][:3] == [
                list(per_agent.values()) for per_agent in returned[1:]
            ]
    if env.done:  # later steps change nothing
        last = env.observations.copy()
        *_, masks = vecenv.step(np.full(5, 1)), vecenv.masks
        assert not masks.any()
        assert not env.rewards.any()
        assert not (env.terminals | env.truncations).any()
        np.testing.assert_array_equal(env.observations, last)


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_overridden_step_is_called_and_gives_the_same_rows(autoreset):
    class OwnStep(PettingZooPufferEnv):
        calls = 0

        def step(self, actions):
            self.calls += 1
            return super().step(actions)

    def rows(kind):
        script = (alive("a", "b", "c"), {"a": "dead", **alive("b", "c")}, alive("b", "c"), {"b": "cut", "c": "dead"})
        creator = functools.partial(kind, env_creator=Arena, env_args=script)
        with vector.make(creator, num_envs=2, backend="Serial", autoreset=autoreset) as vecenv:
            vecenv.reset()
            seen = []
            for _ in range(9):
                outcome = vecenv.step(np.zeros(6, np.int64))
                seen.append([array.tolist() for array in (*outcome[:4], vecenv.masks)] + [outcome[4]])
            if kind is OwnStep:
                assert vecenv.envs[1].calls >= 3
        return seen

    assert rows(OwnStep) == rows(PettingZooPufferEnv)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("own", [{"a": 7}, {"a": {"x": 1}}, [7, 7, 7]])
def test_overridden_step_must_return_values_of_its_rows(place, own):
    class OwnStep(PettingZooPufferEnv):
        def step(self, actions):
            outcome = list(super().step(actions))
            outcome[place] = own
            return tuple(outcome)

    creator = functools.partial(OwnStep, env_creator=Arena, env_args=[alive("a", "b", "c")] * 2)
    with vector.make(creator, backend="Serial") as vecenv:
        vecenv.reset()
        with pytest.raises(
            APIUsageError, match=r"OwnStep: step must return the values in its rows, .* where self.\w+ has"
        ):
            vecenv.step([0, 0, 0])


@pytest.mark.parametrize("reward", [np.nan, -np.inf])
def test_nan_and_infinite_values_name_the_agent(reward):
    env = PettingZooPufferEnv(Arena(*[alive("a", "b")] * 3))
    env.reset()
    observe = env.env.observe
    nan = {"id": 0, "xy": np.float32([0, np.nan])}
    env.env.observe = lambda env, agent: nan if agent == "b" else observe(env, agent)
    with pytest.raises(APIUsageError, match=r"observation\['xy'\] must have numbers, got nan") as error:
        env.step([0, 0, 0])
    assert error.value.__notes__ == ["agent: 'b'"]
    env.env.observe = observe
    env.env.reward = lambda env, agent: reward if agent == "b" else 0.0
    with pytest.raises(
        APIUsageError, match=r"the reward must be a finite number that float32 can hold, got -?(nan|inf) from scripted"
    ) as error:
        env.step([0, 0, 0])
    assert error.value.__notes__ == ["agent: 'b'"]


@pytest.mark.parametrize(("place", "name"), [(2, "termination"), (3, "truncation")])
def test_flags_that_are_no_bools_name_the_agent(place, name):
    env = PettingZooPufferEnv(Arena(*[alive("a", "b")] * 3))
    env.reset()
    step = env.env.step
    env.env.step = lambda actions: [
        value if i != place else {"a": False, "b": "False"} for i, value in enumerate(step(actions))
    ]
    with pytest.raises(APIUsageError, match=rf"the {name} must be True or False, got 'False' from scripted") as error:
        env.step([0, 0, 0])
    assert error.value.__notes__ == ["agent: 'b'"]


@pytest.mark.parametrize("name", ["observations", "rewards", "terminations", "truncations"])
@pytest.mark.parametrize("value", [None, [1.0, 2.0]])
def test_outcomes_that_are_no_dicts_are_refused(name, value):
    class Careless(ScriptedParallelEnv):
        def reset(self, seed=None, options=None):
            observations, infos = super().reset()
            return (value if self.seeds[1:] else observations), infos

        def step(self, actions):
            outcome = list(super().step(actions))
            outcome[("observations", "rewards", "terminations", "truncations").index(name)] = value
            return tuple(outcome)

    env = PettingZooPufferEnv(Careless(alive("a", "b", "c"), alive("a", "b", "c")))
    env.reset()
    with pytest.raises(
        APIUsageError, match=f"emulation: the {name} must be a dict by agent, got {re.escape(str(value))}"
    ):
        env.step([0, 0, 0])
    with pytest.raises(APIUsageError, match="emulation: the observations must be a dict by agent, got"):
        env.reset()


def test_failed_reset_starts_no_episode():
    env = PettingZooPufferEnv(Arena(*[alive("a")] * 3))
    env.reset()
    env.env.script, env.env.observe = (alive("nobody"),), lambda *_: 0
    with pytest.raises(InvalidAgentError):
        env.reset()
    assert env.done
    with pytest.raises(APIUsageError, match="no episode is running"):
        env.step([0, 0, 0])


def test_agent_that_vanishes_is_terminated():
    env = PettingZooPufferEnv(Arena(alive("a", "b"), alive("b"), alive("b")))
    env.reset()
    env.step([0, 0, 0])
    assert env.terminals.tolist() == [False, True, False]
    assert env.masks.tolist() == [False, True, True]
    env.step([0, 0, 0])
    assert env.terminals.tolist() == [False, False, False]
    assert env.masks.tolist() == [False, False, True]


def test_same_step_autoreset_masks_dead_agents_until_the_reset():
    script = (alive("a", "b", "c"), {"a": "dead", **alive("b", "c")}, alive("b", "c"), {"b": "cut", "c": "dead"})
    creator = functools.partial(PettingZooPufferEnv, env_creator=lambda: Arena(*script))
    with vector.make(lambda buf, seed: creator(buf=buf, seed=seed), backend="Serial", autoreset="same_step") as vecenv:
        vecenv.reset()
        seen = []
        for _ in range(3):
            _, rewards, terminals, truncations, _ = vecenv.step(np.zeros(3, np.int64))
            seen.append([array.tolist() for array in (rewards, terminals, truncations, vecenv.masks)])
    assert seen == [  # in the order c, a, b
        [
            [1, 1, 1],
            [False, True, False],
            [False] * 3,
            [True, False, True],
        ],  # the last reward of a is returned, its next action is ignored
        [[2, 0, 2], [False] * 3, [False] * 3, [True, False, True]],
        [[3, 0, 3], [True, False, False], [False, False, True], [True] * 3],  # the reset
    ]


def test_wrong_actions_are_refused():
    env = PettingZooPufferEnv(Arena(alive("a", "b"), alive("a", "b")))
    with pytest.raises(APIUsageError, match="no episode is running"):
        env.step([0, 0, 0])
    env.reset()
    with pytest.raises(InvalidAgentError, match=r"unknown agent 'd'; possible agents: \['c', 'a', 'b'\]"):
        env.step({"a": 0, "b": 0, "d": 0})
    with pytest.raises(APIUsageError, match=r"action of every living agent, got none of \['b'\]"):
        env.step({"a": 0})
    with pytest.raises(APIUsageError, match=r"expected 3 rows of actions.*got shape \(2,\)"):
        env.step([0, 0])
    with pytest.raises(APIUsageError, match=r"step: actions must be .* rows of one length, got \[0, \[0\], 0\]"):
        env.step([0, [0], 0])
    with pytest.raises(APIUsageError, match=r"action must be in 0 to 2, got 3"):
        env.step([0, 3, 0])
    with pytest.raises(InvalidAgentError):
        env.observation_space("d")


def test_unknown_agent_from_the_environment():
    env = PettingZooPufferEnv(Arena(alive("a"), names=("a",)))
    env.env.script = (alive("a"), alive("a"))
    env.reset()
    env.env.possible_agents = ["a", "x"]
    env.env.script = (alive("x"),)
    with pytest.raises(InvalidAgentError, match="unknown agent 'x'"):
        env.reset()


def test_first_observation_names_the_leaf():
    arena = Arena(alive("a"))
    arena.observe = lambda *_: {"id": 1, "xy": np.zeros(3, np.float32)}
    with pytest.raises(APIUsageError, match=r"observation\['xy'\] must have shape \(2,\), got shape \(3,\)") as error:
        PettingZooPufferEnv(arena).reset()
    assert error.value.__notes__ == ["agent: 'a'"]


@pytest.mark.parametrize("agent", ["a", "b"])
def test_first_observation_of_each_agent_is_checked(agent):
    arena = Arena(alive("a", "b"))
    arena.observe = lambda _, name: {"id": 1, "xy": np.full(2, 101 if name == agent else 1, np.float32)}
    with pytest.raises(APIUsageError, match=r"observation\['xy'\]"):
        PettingZooPufferEnv(arena).reset()


def test_constructor_arguments():
    with pytest.raises(APIUsageError, match="got none"):
        PettingZooPufferEnv()
    with pytest.raises(APIUsageError, match=r"env must be a pettingzoo.ParallelEnv or pettingzoo.AECEnv, got 3"):
        PettingZooPufferEnv(env_creator=lambda: 3)
    with pytest.raises(APIUsageError, match="has no possible_agents"):
        PettingZooPufferEnv(Arena(alive("a"), names=()))
    with pytest.raises(
        APIUsageError, match=r"names in possible_agents must differ, got 'a' twice in \['a', 'b', 'a'\]"
    ):
        PettingZooPufferEnv(Arena(alive("a"), names=("a", "b", "a")))
    with pytest.raises(APIUsageError, match=r"same observation space, got Discrete.2. for 'c' and Discrete.3. for 'a'"):
        PettingZooPufferEnv(Arena(alive("a"), space={"c": Discrete(2), "a": Discrete(3), "b": Discrete(2)}))
    env = PettingZooPufferEnv(env_creator=Arena, env_args=[alive("a")], env_kwargs={"echo": True}, seed=5)
    assert isinstance(env, ParallelEnv)
    assert env.unwrapped is env.env
    env.reset()
    env.reset()
    env.reset(seed=2)
    assert env.env.seeds == [5, None, 2]
    assert env.observation_space("a") is env.single_observation_space
    assert env.action_space("a") is env.single_action_space


def test_structured_actions_by_row():
    space = Dict({"move": Discrete(3), "say": Discrete(5, start=1)})
    env = PettingZooPufferEnv(Arena(alive("a", "b"), alive("a", "b"), action_space=space))
    env.reset()
    env.step(np.array([[0, 1], [1, 2], [2, 3]], np.int32))
    assert env.env.got == [{"a": {"move": 1, "say": 2}, "b": {"move": 2, "say": 3}}]


class Turns(AECEnv):
    """Turn-based environment of two agents, which add their actions for three rounds."""

    metadata = {"name": "turns", "is_parallelizable": True}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.possible_agents = ["x", "y"]
        self.render_mode = None

    def observation_space(self, agent):
        return Box(0, 10, (1,))

    def action_space(self, agent):
        return Discrete(2)

    def observe(self, agent):
        return np.array([self.total], np.float32)

    def reset(self, seed=None, options=None):
        self.agents, self.total, self.turns = self.possible_agents[:], 0, 0
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = "x"

    def step(self, action):
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.total += action
        self.turns += 1
        if self.turns == 6:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[self.turns % 2]


def test_turn_based_environments_are_made_parallel():
    env = PettingZooPufferEnv(env_creator=Turns)
    env.reset()
    for expected in (2, 3, 4):
        env.step([1, 1 if expected == 2 else 0])
        assert env.observations.ravel().tolist() == [expected, expected]
    assert env.terminals.all()
    assert env.done


@pytest.mark.parametrize("wrapper", [MultiagentEpisodeStats, MeanOverAgents, PadAgents])
def test_wrappers_take_turn_based_environments(wrapper):
    env = PettingZooPufferEnv(wrapper(Turns()))
    env.reset()
    for _ in range(3):
        infos = env.step([1, 1])[4]
    assert env.observations.ravel().tolist() == [6, 6]
    if wrapper is MultiagentEpisodeStats:
        assert [infos[agent]["episode_length"] for agent in "xy"] == [3, 3]


def test_turn_based_environments_must_be_parallelizable():
    env = Turns()
    env.metadata = {"name": "turns"}
    with pytest.raises(APIUsageError, match=r"is_parallelizable=True, got .*turn_based_aec_to_parallel\(env\)"):
        PettingZooPufferEnv(env)
    emulated = PettingZooPufferEnv(turn_based_aec_to_parallel(env))
    emulated.reset()
    for total in range(1, 4):  # one move at a time
        emulated.step([1, 1])
        assert emulated.observations.ravel().tolist() == [total, total]


class ChangedParallelEnv(ScriptedParallelEnv):
    """Environment that applies ``change`` to one of the dicts returned by ``step`` or ``reset``."""

    def __init__(self, place, change):
        super().__init__(*[alive("a", "b")] * 3)
        self.place, self.change = place, change

    def reset(self, seed=None, options=None):
        outcome = super().reset(seed, options)
        if self.place == "reset":
            self.change(outcome[0])
        return outcome

    def step(self, actions):
        outcome = super().step(actions)
        self.change(outcome[self.place])
        return outcome


@pytest.mark.parametrize(("place", "what"), [(0, "observation"), (1, "reward")])
def test_missing_value_of_a_living_agent_is_named(place, what):
    env = PettingZooPufferEnv(env=ChangedParallelEnv(place, lambda values: values.pop("b")))
    env.reset()
    with pytest.raises(APIUsageError, match=f"step must return one {what} for each living agent, got none for 'b'"):
        env.step([0, 0, 0])


def test_missing_first_observation_of_a_living_agent_is_named():
    env = PettingZooPufferEnv(env=ChangedParallelEnv("reset", lambda values: values.pop("b")))
    with pytest.raises(
        APIUsageError, match="reset must return one observation for each living agent, got none for 'b'"
    ):
        env.reset()


@pytest.mark.parametrize("place", range(4))
def test_unknown_agent_in_any_dict_is_named(place):
    env = PettingZooPufferEnv(env=ChangedParallelEnv(place, lambda values: values.update(bb=0)))
    env.reset()
    with pytest.raises(InvalidAgentError, match="unknown agent 'bb'"):
        env.step([0, 0, 0])


@pytest.mark.parametrize("place", [2, 3])
def test_terminations_and_truncations_can_have_all_or_be_empty(place):
    env = PettingZooPufferEnv(
        env=ChangedParallelEnv(place, lambda values: (values.clear(), values.update(__all__=False)))
    )
    env.reset()
    env.step([0, 0, 0])
    assert env.agents == ["a", "b"]


@pytest.mark.parametrize(
    "attributes",
    [
        lambda obs, act: {"observation_spaces": {"a": obs, "b": obs}, "action_spaces": {"a": act, "b": act}},
        lambda obs, act: {"observation_space": {"a": obs, "b": obs}, "action_space": {"a": act, "b": act}},
        lambda obs, act: {"observation_space": Dict(a=obs, b=obs), "action_space": act},
        lambda obs, act: {"observation_space": obs, "action_space": act},
        lambda obs, act: {"observation_space": [obs, obs], "action_space": [act, act]},
    ],
    ids=["plural", "dicts", "Dict", "one", "lists"],
)
def test_spaces_can_be_attributes(attributes):
    class Fixed(ParallelEnv):
        metadata = {"name": "fixed"}  # noqa: RUF012 - as PettingZoo declares it
        possible_agents = ["a", "b"]  # noqa: RUF012

        def reset(self, seed=None, options=None):
            self.agents = ["a", "b"]
            return {agent: np.zeros(2, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

        def step(self, actions):
            observations, infos = self.reset()
            ends = dict.fromkeys(self.agents, False)
            return observations, dict.fromkeys(self.agents, 1.0), ends, ends, infos

    fixed = type("Fixed", (Fixed,), attributes(Box(0, 1, (2,)), Discrete(3)))
    env = PettingZooPufferEnv(env=MultiagentEpisodeStats(fixed()))
    env.reset()
    assert env.step([2, 2])[1] == {"a": 1.0, "b": 1.0}
    assert env.single_action_space == Discrete(3)
