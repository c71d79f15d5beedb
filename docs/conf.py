"""Settings of the documentation site: ``make docs`` builds it."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import api_page  # noqa: E402 - beside this file

import multimargin  # noqa: E402

project = "multimargin"
author = copyright = "The multimargin developers"  # noqa: A001 - Sphinx's names
version = release = multimargin.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",  # beside this file
]
html_math_renderer = "mathml"
exclude_patterns = ["measured"]
html_theme = "furo"
html_title = f"multimargin {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3  # links to headings as GitHub makes them

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings tell types, and shapes with them
numpydoc_show_class_members = False  # the template of a class lists its methods

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "capture_repr": (),
    "abort_on_example_error": True,
}

api_page.write(HERE / "reference" / "api.rst")
