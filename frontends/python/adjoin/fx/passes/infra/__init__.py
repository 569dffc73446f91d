"""adjoin.fx.passes.infra: what programs over graphs are made of."""
