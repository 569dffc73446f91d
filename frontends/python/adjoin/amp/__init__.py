"""adjoin.amp: mixed precision: casts around ops, and scaled gradients.

Micikevicius et al., Mixed Precision Training, 2018.
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler, OptState

__all__ = ["GradScaler", "OptState", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
