"""adjoin.version: the version of the package, and the version of PyTorch whose names it follows."""

__version__ = "0.1.0"
pytorch = "2.15.0"  # what `torch.__version__` begins with where a program's torch is Adjoin
cuda = None
hip = None
xpu = None
debug = False
git_version = "unknown"
