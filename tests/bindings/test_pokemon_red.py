"""Pokemon Red, tested with its practice cartridge: rewards, positions, states, and errors for wrong ROMs."""

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import pokemon_red
from pufferlib.bindings.pokemon_red import kanto, rom
from pufferlib.bindings.pokemon_red.practice import practice_rom
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("pokemon_red"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.pokemon_red.env import BUTTONS, make_env


def play(env: Any, *buttons: str) -> list[float]:
    """Press ``buttons``, one per step, and return the rewards."""
    return [env.step(BUTTONS.index(button))[1] for button in buttons]


@pytest.fixture
def game() -> Any:
    env = make_env("practice", wait_max=0)
    env.reset(seed=0)
    yield env
    env.close()


def test_new_squares_pay_once(game: Any) -> None:
    assert play(game, "right", "left", "right", "down") == pytest.approx([0.02, 0, 0, 0.02])


def test_levels_events_and_badges_pay(game: Any) -> None:
    assert play(game, "a", "b", "start") == [0.5, 1.0, 5.0]


def test_reset_clears_rewarded_progress(game: Any) -> None:
    before = play(game, "right", "a", "start")
    game.reset(seed=0)
    assert play(game, "right", "a", "start") == before


def test_numbers_have_position_badges_and_party(game: Any) -> None:
    observation = game.step(BUTTONS.index("start"))[0]
    play(game, "a")
    observation = game.step(BUTTONS.index("right"))[0]
    assert game.observation_space.contains(observation)
    numbers = observation["numbers"]
    assert numbers[:3] == pytest.approx([0, 6 / 255, 5 / 255])
    assert numbers[3:5] == pytest.approx([70 / 436, 323 / 444])
    assert numbers[5] == pytest.approx(1 / 8)
    assert numbers[8:14] == pytest.approx([0.01, 0, 0, 0, 0, 0])


def test_pallet_town_leads_north_to_route_1(game: Any) -> None:
    play(game, *["up"] * 5)
    before = game.step(BUTTONS.index("left"))[0]["numbers"][3:5] * (436, 444)
    after = game.step(BUTTONS.index("up"))[0]["numbers"]
    assert after[0] == pytest.approx(12 / 255)
    assert after[3:5] * (436, 444) == pytest.approx(before - (0, 1))


def test_screen_is_halved_and_stacked(game: Any) -> None:
    first = game.step(BUTTONS.index("right"))[0]["screen"][-1].copy()
    second = game.step(BUTTONS.index("down"))[0]["screen"]
    assert second.shape == (3, 72, 80)
    assert np.array_equal(second[1], first)
    assert not np.array_equal(second[2], first)


def test_max_steps_truncates_and_info_has_sums() -> None:
    env = pufferlib.make("pokemon_red/practice", max_steps=3, wait_max=0)
    env.reset()
    for button in ("right", "a", "start"):
        *_, truncated, info = env.step(BUTTONS.index(button))  # type: ignore[attr-defined]
    env.close()
    assert truncated
    expected = {"squares": 2, "maps": 1, "levels": 1, "badges": 1, "events": 0, "perf": 1 / 8, "episode_length": 3}
    assert {key: info[key] for key in expected} == expected


def test_episodes_start_at_a_saved_state(game: Any, tmp_path: Path) -> None:
    play(game, "start", "right")
    with open(tmp_path / "here.state", "wb") as file:
        game._console.save_state(file)
    env = make_env("practice", state=tmp_path / "here.state", wait_max=0)
    numbers = env.reset(seed=0)[0]["numbers"]
    assert numbers[1] == pytest.approx(6 / 255)
    assert play(env, "start") == [5.0]
    env.close()


def test_wrong_state_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", Path(__file__)):
        with pytest.raises(APIUsageError, match="pokemon_red/practice: state must be a file that save_state"):
            make_env("practice", state=path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hold": 24}, "hold must be less than frame_skip=24, got 24"),
        ({"stack": 0}, "stack must be an int >= 1, got 0"),
        ({"wait_max": 1.5}, "wait_max must be an int >= 0, got 1.5"),
        ({"reward_badge": "much"}, "reward_badge must be a finite number, got 'much'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"rom": "red.gb"}, "has its cartridge built in"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        pufferlib.make("pokemon_red/practice", **options)


def test_unknown_options_and_names_suggest_others() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'frame_skip'"):
        pufferlib.make("pokemon_red/practice", framskip=4)
    with pytest.raises(UnknownNameError, match="did you mean 'red'"):
        pokemon_red.env_creator("rad")


def test_missing_rom_error_depends_on_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv(rom.VARIABLE, raising=False)
    for image, way in (
        (False, f"to {rom.default_path()}, set {rom.VARIABLE} to where it is"),
        (True, f"with --env.rom red.gb at the end, or with -e {rom.VARIABLE}=/workspace/red.gb"),
    ):
        monkeypatch.setattr(rom, "in_image", lambda image=image: image)
        with pytest.raises(APIUsageError, match=re.escape(way)):
            rom.find_rom()


def test_rom_is_found_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = practice_rom()
    monkeypatch.setattr(rom, "SHA1", hashlib.sha1(image).hexdigest())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv(rom.VARIABLE, raising=False)
    with pytest.raises(APIUsageError, match=rf"SHA-1 .*{tmp_path}/pufferlib/pokemon_red.gb, which cannot be read"):
        rom.find_rom()
    rom.default_path().parent.mkdir()
    rom.default_path().write_bytes(image)
    assert rom.find_rom() == image
    monkeypatch.setenv(rom.VARIABLE, str(tmp_path / "named.gb"))
    with pytest.raises(APIUsageError, match=f"the variable {rom.VARIABLE} is {tmp_path}/named.gb"):
        rom.find_rom()
    (tmp_path / "named.gb").write_bytes(image)
    assert rom.find_rom() == image
    with pytest.raises(APIUsageError, match="the option rom is"):
        rom.find_rom(tmp_path / "absent.gb")
    env = make_env("red", wait_max=0)
    env.reset(seed=0)
    assert play(env, "start") == [5.0]
    env.close()
    assert {path.name for path in tmp_path.rglob("*")} == {"pufferlib", "pokemon_red.gb", "named.gb"}


def test_wrong_rom_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rom.gb"
    cartridge = bytearray(practice_rom())
    cartridge[0x104:0x108] = rom.LOGO_START
    for image, name in (
        (bytes(cartridge), "another cartridge, or a changed one: 'PRACTICE', 32,768 bytes, SHA-1"),
        (b"hello", r"no Game Boy cartridge \(5 bytes"),
        (b"PK\3\4", "a zip archive"),
    ):
        file.write_bytes(image)
        with pytest.raises(APIUsageError, match=f"expected the cartridge image Pokemon Red .* is {name}"):
            rom.find_rom(file)
    monkeypatch.setitem(rom.OTHERS, hashlib.sha1(b"blue").hexdigest(), "Pokemon Blue")
    file.write_bytes(b"blue")
    with pytest.raises(APIUsageError, match="is Pokemon Blue"):
        rom.find_rom(file)


def test_maps_are_adjacent_in_kanto_coordinates() -> None:
    town, route_1, viridian = ((64, 318), (64, 282), (54, 246))
    assert [kanto.on_kanto(map_id, 0, 0) for map_id in (0, 12, 1)] == [town, route_1, viridian]
    assert town[1] - route_1[1] == route_1[1] - viridian[1] == 36
    assert kanto.on_kanto(37, 3, 3) is None  # the inside of a house
    assert all(x < kanto.WIDTH and y < kanto.HEIGHT for x, y in kanto.CORNERS.values())
