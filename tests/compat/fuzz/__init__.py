"""tests/compat/fuzz: calls made at random, run in Adjoin and in PyTorch; ``run.py`` is the command."""
