"""adjoin.ao: quantization's names, as far as packages import them."""
