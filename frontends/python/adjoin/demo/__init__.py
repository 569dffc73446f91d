"""adjoin.demo: programs that show the library at work: ``python -m adjoin.demo.digits``."""
