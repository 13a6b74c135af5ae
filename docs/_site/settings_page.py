"""Writes docs/settings.md, the reference of all settings, from the dataclasses and the docstrings of their fields.

With `--check` it writes nothing, and exits with 1 if the page is out of date.
"""

import dataclasses
import math
import sys
import types
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pufferlib.settings.config import Config, docs_of, limits_of
from pufferlib.sweeps import SweepConfig

PAGE = Path(__file__).parents[1] / "settings.md"
HEAD = """# Settings

This page lists every setting of a run. `python docs/_site/settings_page.py` writes it from the configuration classes.
`puffer train ENV --help` prints the same list with the values for one environment.

Each setting has three spellings:

| Where | Spelling |
| --- | --- |
| command line | `--train.learning-rate 3e-4` |
| file | `learning_rate = 3e-4` in the table `[train]` |
| Python | `{"train.learning_rate": 3e-4}` |

A true/false setting needs no value on the command line:

| Flag | Value |
| --- | --- |
| `--train.norm-adv`, `--train.norm-adv true` | true |
| `--train.no-norm-adv`, `--no-train.norm-adv`, `--train.norm-adv false` | false |

Whole numbers can be written as `1e6` or `10_000`. `None` unsets a setting that may be unset.

Settings come from these sources. Later ones override earlier ones:

1. the defaults below
2. for all environments except those of Ocean, `pufferlib/settings/third_party.toml`, and for Python environments
   outside this repository, `pufferlib/settings/outside.toml`
3. the settings of the environment, such as `pufferlib/ocean/breakout/train.toml`, the `train.toml` of its binding, or
   [your own file](your-own.md#your-own-settings-and-network)
4. the file that `--config` names
5. flags, or the dict of overrides in Python

`puffer train ENV --show-settings` prints every setting with its value and its source, and trains nothing. `--help`
describes them. `pufferlib.training.load_config` merges the same sources in Python. A run stores the merged settings in
its `config.toml`.

A table such as `[cuda.train]` in a file applies only if training uses a GPU, and `[perceptron.policy]` only if
`policy.name` is `Default`. An unknown setting is an error, and the message suggests the nearest name.

### Settings for some environments

A file can have tables for some of its environments. The name of the environment, or a pattern with `*`, `?` or `[abc]`,
comes before the name of the section:

```toml
[train]
learning_rate = 3e-4

["Humanoid*".train]
learning_rate = 1e-4

["Hopper-v5".policy]
hidden_size = 256

["Hopper-v5".cuda.train]
minibatch_size = 4096
```

In each file, the general sections apply first, then the matching patterns in the order of the file, and last the table
with the exact name. So every table of a `--config` file overrides every table of the environment's own file.

| Environment | Names in a file |
| --- | --- |
| of a binding, `mujoco/Hopper-v5` | `Hopper-v5`, `mujoco/Hopper-v5` |
| of a Python file or module, `my_env.py:Forage` or only `my_env.py` | `Forage`, `my_env.py:Forage`, its path |
| any other | its name, such as `breakout` or `CartPole-v1` |

A table whose name matches no environment is an error before training starts. The `train.toml` of a binding may name the
environments of this binding, `my_env.toml` the ones that `my_env.py` defines or imports, and a `--config` file all
environments, such as `hunt.py:Hunt` and `mypkg.envs:Hunt`.

## env

Keyword arguments of the environment, such as `--env.num-envs 64`. The environment checks them, and each needs a value.
`puffer train ENV --help` lists those that are known. [Ocean](ocean.md) describes the environments in C.
"""


def main() -> int:
    """Write the page, or compare it."""
    if sys.argv[1:] == ["--check"]:
        is_current = PAGE.read_text("utf-8") == render()
        print(f"{PAGE} is {'up to date' if is_current else f'out of date; run: python {sys.argv[0]}'}")
        return 0 if is_current else 1
    PAGE.write_text(render(), "utf-8")
    print(f"wrote {PAGE}")
    return 0


def render() -> str:
    """Return the page as Markdown."""
    sections = [(name, kind) for name, kind in get_type_hints(Config).items() if dataclasses.is_dataclass(kind)]
    return HEAD + "".join(_section(name, kind) for name, kind in [*sections, ("sweep", SweepConfig)])


def _section(name: str, kind: Any) -> str:
    docs, hints, limits = docs_of(kind), get_type_hints(kind), limits_of(kind)
    inner = {field.name for field in dataclasses.fields(kind) if dataclasses.is_dataclass(hints[field.name])}
    rows = [
        f"| `--{name}.{field.name.replace('_', '-')}` | {_values(hints[field.name], limits.get(field.name))} "
        f"| {_default(field.default)} | {docs[field.name]} |"
        for field in dataclasses.fields(kind)
        if field.name not in inner
    ]
    table = "\n".join(["| Flag | Values | Default | Description |", "| --- | --- | --- | --- |", *rows])
    return f"\n## {name}\n\n{kind.__doc__}\n\n{table}\n" + "".join(
        _section(f"{name}.{key}", hints[key]) for key in hints if key in inner
    )


def _values(hint: Any, limits: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) is tuple:
        return "list of words" if get_args(hint)[0] is str else f"list of {_values(get_args(hint)[0], limits)}"
    options = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    unset = " or unset" if types.NoneType in options else ""
    if bool in options:
        return f"`true`, `false`{unset}"
    kind = "int" if int in options else "float" if float in options else "text"
    is_limited = limits is not None and math.isfinite(limits.low)
    return f"{kind} {limits.allowed()}{unset}" if is_limited else f"{kind}{unset}"


def _default(value: Any) -> str:
    if value is None:
        return "unset"
    if value in ("", ()):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    sys.exit(main())
