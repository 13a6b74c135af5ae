"""Sphinx configuration of the documentation site, which `scripts/docs` builds.

The source folder is the root of the repository, so that links between pages work in the checkout, on the site and in a
repository viewer on the web.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_site"))

import inventories  # noqa: E402
from sphinx.ext.autodoc.mock import MockFinder  # noqa: E402

import pufferlib  # noqa: E402

project = "PufferTank"
version = release = pufferlib.__version__
copyright = "the authors of PufferTank, MIT licence"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "pages",
    "reference",
]
# Packages that are missing in the image of the documentation. Adapters are documented without them.
sys.meta_path.insert(0, MockFinder(["dm_env", "ray", "stable_baselines3", "tensordict", "torchrl"]))
nitpicky = True
# Internal names of other libraries in signatures, and limits of settings.
nitpick_ignore_regex = [
    ("py:class", r"(numpy\._typing|pettingzoo\.utils\.env\.AgentID).*|Range|inf|[0-9.]+|types\.Annotated"),
    ("py:class", r"numpy\.int(32|eger)|contextlib\.AbstractContextManager|torch\.nn\.parameter\.Parameter|About"),
    ("py:class", "Console|Study|BaseDistribution"),
    # Imported only for type checkers.
    ("py:class", r"(Gymnasium|PettingZoo)?PufferEnv|VectorEnv|Ranks|EpisodeMeans|torch\.optim\.Optimizer"),
    ("py:class", r"PoolVectorEnv|DMPoolEnv|enum\.StrEnum"),
]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**.md", "docker/README.md", "examples/README.md", "examples/package/README.md"]
exclude_patterns = [".*", "build", "runs", "docs/_*", "pufferlib", "bindings", "tests", "benchmarks", "scripts"]

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the changelog repeats its headings

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autosummary_generate = False
napoleon_use_ivar = True
maximum_signature_line_length = 90
python_use_unqualified_type_names = True
intersphinx_mapping = inventories.mapping(HERE / "inventories", ROOT / "build" / "docs" / "inventories")

html_theme = "furo"
html_title = "PufferTank"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_extra_path = ["_site/index.html"]
if (ROOT / "build" / "web").is_dir():
    html_extra_path.append("../build/web")  # the games, which scripts/web builds
html_show_sphinx = False
html_copy_source = False
highlight_language = "text"  # for blocks without a language, which show terminal output
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c7a",
        "color-brand-content": "#0b6a8d",
        "color-api-name": "#0b5c7a",
        "color-api-pre-name": "#6b7785",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc7e8",
        "color-brand-content": "#7cc7e8",
        "color-api-name": "#7cc7e8",
        "color-api-pre-name": "#8b97a5",
    },
}
