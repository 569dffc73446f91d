"""adjoin.ao.nn: quantization's layers, as far as they work on floats."""
