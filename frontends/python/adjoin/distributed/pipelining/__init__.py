"""adjoin.distributed.pipelining: a model's stages on several processes, through which parts of a batch go one behind the other."""

from ._schedules import (  # noqa: F401
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from ._stage import PipelineStage  # noqa: F401

__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "pipeline",
]  # fmt: skip


def pipeline(module, mb_args=(), mb_kwargs=None, split_spec=None, split_policy=None):
    """Raises: nothing here cuts a model into stages."""
    raise NotImplementedError(
        "pipeline: models are not cut into stages here; give each process its layers: "
        "PipelineStage(nn.Sequential(*layers[first:last]), stage_index, num_stages, device)"
    )
