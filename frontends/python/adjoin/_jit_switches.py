"""adjoin._jit_switches: the switches of TorchScript's executor that packages turn. Scripts are interpreted here: they only keep what was set."""

_set = {
    "executor": True,
    "mode": True,
    "cpu": False,
    "gpu": True,
    "texpr": True,
    "depth": 20,
    "fusion": [("STATIC", 2), ("DYNAMIC", 10)],
}
NAMES = {}


def _told(name, of, text):
    def ask():
        return _set[of]

    ask.__name__, ask.__doc__ = name, text
    NAMES[name] = ask


def _switch(name, of, text, says_before=True):
    def turn(value):
        before, _set[of] = _set[of], value
        return before if says_before else None

    turn.__name__, turn.__doc__ = name, text
    NAMES[name] = turn


_switch("_jit_set_profiling_executor", "executor", "Keeps a switch and returns what it was.")
_switch("_jit_set_profiling_mode", "mode", "Keeps a switch and returns what it was.")
_switch("_jit_set_bailout_depth", "depth", "Keeps a number and returns what it was.")
_switch("_jit_set_fusion_strategy", "fusion", "Keeps a list and returns what it was.")
_switch("_jit_override_can_fuse_on_cpu", "cpu", "Keeps a switch.", says_before=False)
_switch("_jit_override_can_fuse_on_gpu", "gpu", "Keeps a switch.", says_before=False)
_switch("_jit_set_texpr_fuser_enabled", "texpr", "Keeps a switch.", says_before=False)
_told("_jit_can_fuse_on_cpu", "cpu", "What _jit_override_can_fuse_on_cpu() was told.")
_told("_jit_can_fuse_on_gpu", "gpu", "What _jit_override_can_fuse_on_gpu() was told.")
_told("_jit_texpr_fuser_enabled", "texpr", "What _jit_set_texpr_fuser_enabled() was told.")


def _jit_set_nvfuser_enabled(value):
    """False: there is no such fuser."""
    return False


NAMES["_jit_set_nvfuser_enabled"] = _jit_set_nvfuser_enabled
