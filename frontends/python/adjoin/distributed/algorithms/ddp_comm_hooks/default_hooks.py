"""adjoin.distributed.algorithms.ddp_comm_hooks.default_hooks: the mean of the gradients, whole or in halves on their way."""

import adjoin

from .... import distributed as dist


def allreduce_hook(process_group, bucket):
    """The mean, as without a hook."""
    return _mean(process_group, bucket, None)


def fp16_compress_hook(process_group, bucket):
    """The mean, moved and summed in float16."""
    return _mean(process_group, bucket, adjoin.float16)


def bf16_compress_hook(process_group, bucket):
    """The mean, moved and summed in bfloat16."""
    return _mean(process_group, bucket, adjoin.bfloat16)


def _mean(group, bucket, dtype):
    whole = bucket.buffer()
    moved = whole if dtype is None else whole.to(dtype)
    moved.div_(dist.get_world_size(group))
    work = dist.all_reduce(moved, group=group, async_op=True)
    return work.get_future().then(lambda future: whole.copy_(future.value()[0]))


def _around(dtype):
    def wrapper(hook):
        def compressed(state, bucket):
            bucket.set_buffer(bucket.buffer().to(dtype).to(bucket.buffer().dtype))
            return hook(state, bucket)

        return compressed

    return wrapper


fp16_compress_wrapper = _around(adjoin.float16)
bf16_compress_wrapper = _around(adjoin.bfloat16)
