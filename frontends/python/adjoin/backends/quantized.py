"""adjoin.backends.quantized: which library computes with quantized numbers: none does."""

supported_engines = ["none"]
engine = "none"
