"""adjoin.fx.experimental: what PyTorch keeps under this name."""
