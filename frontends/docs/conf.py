"""frontends/docs/conf.py: how Sphinx makes the site of the tutorials and of what make.py wrote."""

project = "Adjoin"
html_title = "Adjoin"
extensions = ["myst_parser"]
html_theme = "furo"  # search, dark mode, narrow screens
myst_heading_anchors = 3
html_copy_source = False
