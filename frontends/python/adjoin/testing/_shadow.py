"""adjoin.testing._shadow: every op of a thread on a second backend too, up to the first difference."""

import os

from .. import _C


class shadow:
    """Makes each call of this thread on another device as well and compares the results.

    >>> with adjoin.testing.shadow("reference"):
    ...     train_one_step()

    The first call whose results are further apart than allowed raises AssertionError, which names the op, shapes,
    dtypes and the distance in units in the last place (ULP). Pointwise ops may differ by `ulp` of the element, others,
    which add up and cancel, by `scale_ulp` of the largest magnitude among results and inputs. Views, memory that nobody
    has written, calls between devices and ops that the other device lacks are left out: `compared` and `left_out`
    count. What a backward pass calls on this thread is compared too. ADJOIN_SHADOW=reference[,ULP[,SCALE_ULP]] does
    this to the main thread of a whole program.
    """

    def __init__(self, device="reference", ulp=None, scale_ulp=None):
        self.options = (device, -1.0 if ulp is None else float(ulp), -1.0 if scale_ulp is None else float(scale_ulp))
        self.compared = self.left_out = 0

    def _tell(self, device, ulp, scale_ulp):
        return _C.find_op("shadow::watch")(_C.tensor(0), device, ulp, scale_ulp).tolist()

    def __enter__(self):
        self._tell(*self.options)
        self.before = _C.include_key("shadow", True)
        return self

    def __exit__(self, *error):
        _C.include_key("shadow", self.before)
        self.compared, self.left_out = self._tell("", 0.0, 0.0)


def from_environment():
    """For the whole program, if ADJOIN_SHADOW says so."""
    device, *limits = os.environ["ADJOIN_SHADOW"].split(",")
    shadow(device, *limits).__enter__()
