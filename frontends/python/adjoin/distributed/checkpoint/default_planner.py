"""adjoin.distributed.checkpoint.default_planner: the longer path to the planners."""

from .planner import DefaultLoadPlanner, DefaultSavePlanner, _EmptyStateDictLoadPlanner  # noqa: F401
