"""adjoin.utils._native: where the process is in machine code, and names of modules."""


def set_module(obj, mod):
    """Sets the name of the module that a class or a function says it is from."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def get_cpp_backtrace(frames_to_skip=0, maximum_number_of_frames=64):
    """The functions in machine code that led here, one a line, the innermost first, as the C library knows their names."""
    import ctypes

    libc = ctypes.CDLL(None)
    frames = (ctypes.c_void_p * (frames_to_skip + maximum_number_of_frames))()
    count = libc.backtrace(frames, len(frames))
    libc.backtrace_symbols.restype = ctypes.POINTER(ctypes.c_char_p)
    texts = libc.backtrace_symbols(frames, count)
    try:
        lines = [texts[i].decode(errors="replace") for i in range(frames_to_skip, count)]
    finally:
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free(texts)
    return "".join(f"frame #{i}: {line}\n" for i, line in enumerate(lines))
