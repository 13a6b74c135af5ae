import pytest


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Train two runs of connect4 with different networks: "old" is untrained, "new" learned for 25 updates."""
    from pufferlib.settings.config import load_config
    from pufferlib.training.trainer import Trainer

    folder = tmp_path_factory.mktemp("runs")
    settings = {
        "env.players": 2,
        "env.num_envs": 64,
        "selfplay.opponents": 2,
        "train.horizon": 32,
        "train.minibatch_size": 1024,
        "train.device": "cpu",
        "train.num_threads": 1,
    }
    own = {
        "old": ({"policy.hidden_size": 16, "policy.memory": "LSTM"}, 0),
        "new": ({"policy.hidden_size": 32, "train.normalize_observations": True}, 25),
    }
    for name, (more, updates) in own.items():
        run = folder / name
        run.mkdir()
        config = load_config("connect4", {**settings, **more})
        config.save(run / "config.toml")
        trainer = Trainer(config, run)
        for _ in range(updates):
            trainer.step()
        trainer.save()
        trainer.close()
    return folder
