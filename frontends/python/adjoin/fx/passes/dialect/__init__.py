"""adjoin.fx.passes.dialect: programs over graphs of one family of functions."""
