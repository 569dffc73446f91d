"""adjoin.utils.data.datapipes: data sets as chains of small steps: iter for streams, map for what has keys."""

from . import iter, map  # noqa: F401, A004
