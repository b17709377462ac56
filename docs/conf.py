"""Settings of the documentation site. `make docs` builds it into build/docs; every warning is an error.

Sphinx reads Markdown (MyST). It finds broken links, missing anchors and pages that stand in no navigation, and needs no
network. `_ext/generated.py` makes the reference pages from the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dice.kernels.api  # before autodoc, which imports with TYPE_CHECKING set, and pydantic fails then
import dice.service.stage  # noqa: F401 - likewise

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "DICE, reproduced"
author = "The contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "generated"]
exclude_patterns = ["schema", "_ext"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["wide-tables.css"]
pygments_style = "friendly"

autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": "model_config, __init__"}
default_role = "code"  # docstrings are written with single backticks
