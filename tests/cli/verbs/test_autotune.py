"""Tests of ``puffer autotune``."""

import json
from pathlib import Path

import pytest

from pufferlib.cli import main


def test_autotune_prints_fastest_config_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    quick = ["autotune", "squared", "--batch-size=2", "--max-envs=4", "--time-per-test=0.02"]
    assert main([*quick, "--json"]) == 0
    configs = json.loads(capsys.readouterr().out)
    rates = [config["steps_per_second"] for config in configs]
    assert rates == sorted(rates, reverse=True)
    assert main(quick) == 0
    text = capsys.readouterr().out
    assert "agents: 1" in text
    assert f"{rates[0]:,.0f}" in text  # cached by the first call
    assert f"Fastest:      vector.make(env_creator('squared'), backend={configs[0]['kwargs']['backend']!r}" in text
