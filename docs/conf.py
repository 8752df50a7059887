"""How the documentation is built: Sphinx, MyST, numpydoc, furo; nothing is fetched."""

import pkgutil

import budge

project = "budge"
author = "the budge developers"
copyright = "the budge developers"
version = release = budge.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
suppress_warnings = ["ref.python"]  # two modules may each have a class of one name; a bare annotation does not say which

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# A name is documented where it is defined, not again where a package hands it on.
autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
numpydoc_show_class_members = False

toc_object_entries = False  # every page carries the tree of contents: thousands of names would make it slow to build and to read
html_theme = "furo"
html_title = "budge"


def module_pages() -> str:
    """One ``automodule`` for each public module, so that a new one appears here by itself."""
    names = [info.name for info in pkgutil.walk_packages(budge.__path__, "budge.")]
    public = [name for name in names if not name.startswith("budge.cli") and "._" not in name]
    return "\n".join(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n" for name in public)


def setup(app):
    def fill(app, docname, source):
        if docname == "reference/api":
            source[0] = source[0].replace("{{ modules }}", module_pages())

    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
