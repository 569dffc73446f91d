"""The module that `import torch` finds where a program is run with Adjoin: it puts Adjoin in its own place."""

import adjoin.torch

adjoin.torch.install()
