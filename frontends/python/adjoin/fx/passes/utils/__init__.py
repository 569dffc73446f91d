"""adjoin.fx.passes.utils: tools of passes."""
