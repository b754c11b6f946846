"""Sphinx's settings for the site, which tools/make_site.py puts together. Pages load nothing from elsewhere."""

from beeline import __version__

project, author, version, release = "beeline", "The beeline authors", __version__, __version__
project_copyright = "the beeline authors, BSD-3-Clause"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # the anchors that links in the Markdown name
nitpicky = True
smartquotes = False  # two hyphens begin an option, they are no dash
suppress_warnings = ["misc.highlighting_failure"]  # code may hold an ellipsis

html_theme = "pydata_sphinx_theme"
html_title = "beeline"
html_static_path = ["static"]
html_css_files = ["colours.css", "site.css"]
html_extra_path = ["extra"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a browser refuses for files: results are shown without
html_context = {"default_mode": "auto"}  # light or dark as the system is
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_header_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "gallery": [], "benchmarks": [], "faq": []}
