"""adjoin.utils.data._utils.collate: the same functions as adjoin.utils.data.collate."""

import re

from ..collate import (  # noqa: F401
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # in dtype.str of arrays that no tensor is made of
