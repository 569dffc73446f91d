"""tests/compat/databases: the databases that PyTorch's package ships to test itself, run in Adjoin and in PyTorch; ``run.py`` is the command."""
