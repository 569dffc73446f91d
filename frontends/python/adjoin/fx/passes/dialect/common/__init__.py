"""adjoin.fx.passes.dialect.common: those that hold for all."""
