"""Sphinx extension that fills the reference pages, and links names in code style to their documentation."""

import re
import typing
from pathlib import Path

import public
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

_DOTTED = re.compile(r"(pufferlib|gymnasium|numpy|torch)(\.\w+)+")


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = public.expand(source[0], Path(app.srcdir))


def _bases(app: Sphinx, name: str, value: type, options: object, shown: list[type]) -> None:
    shown[:] = [base for base in shown if typing.get_origin(base) or base in public.bases(value)]


def _signature(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Show default factories of dataclasses as `...`, because `<factory>` is not valid Python."""
    return (signature.replace("<factory>", "..."), returns) if signature and "<factory>" in signature else None


class PlainAttributes:
    """Keeps docstrings below attributes as they are. Napoleon would read the words before a colon as a type."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def keep(self, app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
        """Remember the lines before Napoleon changes them."""
        self._lines = [*lines]

    def restore(self, app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
        """Put the lines of an attribute back."""
        if what == "attribute":
            lines[:] = self._lines


def _page(app: Sphinx, name: str, template: str, context: dict[str, object], doctree: nodes.document | None) -> None:
    """Remove dead links from pages with source code: links to builtins, and to names documented in another module."""
    if name.startswith("_modules/"):
        dead = r'<a class="viewcode-back".*?</a>|<li><a href="builtins.html">builtins</a></li>'
        context["body"] = re.sub(dead, "", str(context["body"]))


class LinkNames(SphinxTransform):
    """Transform that links full names in code style, such as `gymnasium.spaces.Box`, if they are documented."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        """Wrap each name in a reference."""
        for literal in list(self.document.findall(nodes.literal)):
            if _DOTTED.fullmatch(literal.astext()) and not isinstance(literal.parent, nodes.reference | pending_xref):
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=literal.astext(), is_guess=True)
                link["refdoc"] = self.env.docname
                literal.replace_self(link)
                link += literal


def _unresolved(app: Sphinx, env: BuildEnvironment, link: pending_xref, text: nodes.Element) -> nodes.Element | None:
    """Keep unresolved names as plain text if they were only a guess, or are our internal classes in signatures."""
    is_inner = link["reftarget"].startswith("pufferlib.") and link.get("reftype") == "class"
    return text if is_inner or link.get("is_guess") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    for kind in PyObject.doc_field_types:
        kind.label = "Attributes" if kind.name == "variable" else kind.label  # the heading that docstrings use
    app.connect("source-read", _read)
    app.connect("autodoc-process-bases", _bases)
    app.connect("autodoc-process-signature", _signature)
    attributes = PlainAttributes()
    app.connect("autodoc-process-docstring", attributes.keep, priority=400)  # Napoleon has 500
    app.connect("autodoc-process-docstring", attributes.restore, priority=600)
    app.connect("html-page-context", _page)
    app.connect("missing-reference", _unresolved, priority=900)  # after intersphinx
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
