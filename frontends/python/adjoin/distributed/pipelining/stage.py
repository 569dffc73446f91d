"""adjoin.distributed.pipelining.stage: the longer path to PipelineStage."""

from ._stage import PipelineStage  # noqa: F401
