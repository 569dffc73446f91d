"""python -m adjoin.demo: what there is to run."""

print("usage: python -m adjoin.demo.digits [--help]    trains a small network on pictures of handwritten digits")
