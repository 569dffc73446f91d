"""frontends/docs/conf.py: how Sphinx makes the site of the tutorials and of what make.py wrote."""

project = "Adjoin"
html_title = "Adjoin"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"  # search, dark mode, narrow screens
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 3
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
