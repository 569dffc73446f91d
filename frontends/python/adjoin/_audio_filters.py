"""adjoin._audio_filters: the ops of the spaces `torchaudio` and `_torchaudio`: recursive filters, alignment, the transducer's loss.

``torchaudio`` calls them; they are defined when its compiled part is asked for. A recursion works by blocks: within one it is a
product with the inverse of its triangular matrix, between two it goes on from the last outputs.
"""

import adjoin

from .library import define, impl

_BLOCK = 128


def _recursion(x, a, y):
    """``y[n] = x[n] - (a[:-1] y[n - order .. n - 1])``: x (batch, channel, n), a (channel, order + 1), its last column 1; y
    (batch, channel, order + n) has the outputs before and gets the others."""
    order, n = a.shape[1] - 1, x.shape[2]
    if not order:
        y.copy_(x)
        return
    size = max(min(_BLOCK, n), order)
    places = adjoin.arange(order + size, device=a.device)
    columns = places - places[:size].unsqueeze(-1)
    inside = (columns >= 0) & (columns <= order)
    matrix = adjoin.where(inside, a[:, columns.clamp(0, order)], a.new_zeros(()))  # (channel, size, order + size)
    eye = adjoin.eye(size, dtype=a.dtype, device=a.device).expand(len(a), size, size)
    inverse = adjoin.linalg.solve_triangular(matrix[:, :, order:], eye, upper=False, unitriangular=True)
    step, carry = inverse.mT.contiguous(), (inverse @ matrix[:, :, :order]).mT.contiguous()
    x, out = x.transpose(0, 1), y.transpose(0, 1)
    for at in range(0, n, size):
        many = min(size, n - at)
        made = x[:, :, at : at + many] @ step[:, :many, :many] - out[:, :, at : at + order] @ carry[:, :, :many]
        out[:, :, order + at : order + at + many] = made


def _lfilter_core_loop(input, a_flipped, padded):
    a, order = a_flipped, a_flipped.shape[1] - 1
    if padded.shape != (*input.shape[:2], input.shape[2] + order) or len(a) != input.shape[1]:
        raise RuntimeError(
            f"torchaudio::_lfilter_core_loop: input {tuple(input.shape)}, coefficients {tuple(a.shape)} and output {tuple(padded.shape)} "
            "do not fit: (batch, channel, n), (channel, order + 1), (batch, channel, order + n) are wanted"
        )
    _recursion(input, a, padded)


def _overdrive_core_loop(waveform, temp, last_in, last_out, output):
    steps = temp - adjoin.cat([last_in.unsqueeze(-1), temp[:, :-1]], -1)
    y = adjoin.cat([last_out.unsqueeze(-1), adjoin.empty_like(temp)], -1).unsqueeze(1)
    _recursion(steps.unsqueeze(1), temp.new_tensor([[-0.995, 1.0]]), y)
    output.copy_(waveform * 0.5 + y[:, 0, 1:] * 0.75)


def _forced_align(log_probs, targets, input_lengths, target_lengths, blank):
    """The best path of CTC through the frames: (its labels, the probabilities as they were)."""
    if len(log_probs) != 1 or len(targets) != 1:
        raise RuntimeError("torchaudio::forced_align: one sequence is aligned at a time; the batch must have one row")
    frames, labels = int(input_lengths[0]), targets[0, : int(target_lengths[0])].long()
    repeats = int((labels[1:] == labels[:-1]).sum())
    if frames != log_probs.shape[1] or frames < len(labels) + repeats:
        raise RuntimeError(
            f"torchaudio::forced_align: targets length is too long for CTC: {frames} frames of {log_probs.shape[1]}, "
            f"{len(labels)} labels, {repeats} of them repeated; a frame for each label and for a blank between equal ones is wanted"
        )
    states = labels.new_full((2 * len(labels) + 1,), blank)
    states[1::2] = labels
    skips = adjoin.zeros(len(states), dtype=adjoin.bool, device=labels.device)
    skips[3::2] = labels[1:] != labels[:-1]
    seen = log_probs[0, :, states]
    lowest = seen.new_full((2,), -adjoin.inf)
    alpha, back = adjoin.full_like(seen[0], -adjoin.inf), []
    alpha[:2] = seen[0, :2]
    for row in seen[1:]:
        before = adjoin.cat([lowest, alpha])
        ways = adjoin.stack([alpha, before[1:-1], adjoin.where(skips, before[:-2], lowest[:1])])
        alpha, chosen = ways.max(0)
        alpha = alpha + row
        back.append(chosen.tolist())
    at = len(states) - 1 if len(states) == 1 or alpha[-1] > alpha[-2] else len(states) - 2
    path = [at]
    for chosen in reversed(back):
        at -= chosen[at]
        path.append(at)
    return states[path[::-1]].to(targets.dtype).unsqueeze(0), log_probs.clone()


def _rnnt_loss_forward(logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax=True):
    """(the cost of each sequence, its gradient by the logits)"""
    if logits.dim() != 4 or targets.shape != (len(logits), logits.shape[2] - 1):
        raise RuntimeError(
            f"torchaudio::rnnt_loss_forward: logits {tuple(logits.shape)} and targets {tuple(targets.shape)} do not fit: "
            "(batch, time, labels + 1, classes) and (batch, labels) are wanted"
        )
    with adjoin.enable_grad():
        x = logits.detach().requires_grad_()
        p = x.log_softmax(-1) if fused_log_softmax else x
        silent = p[..., blank % logits.shape[-1]]
        index = targets.long()[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
        label = p[:, :, :-1].gather(3, index).squeeze(-1)
        row, costs, every = None, [], adjoin.arange(len(logits), device=x.device)
        ends = target_lengths.long()
        for t in range(logits.shape[1]):
            along = adjoin.nn.functional.pad(label[:, t].cumsum(-1), (1, 0))
            if row is None:
                row = along
            else:
                row = along + (row + silent[:, t - 1] - along).logcumsumexp(-1)
            costs.append(row[every, ends] + silent[every, t, ends])
        cost = -adjoin.stack(costs, 1)[every, logit_lengths.long() - 1]
        (grad,) = adjoin.autograd.grad(cost.sum(), x)
    return cost.detach(), grad.clamp(-clamp, clamp) if clamp > 0 else grad


for _schema, _function in {
    "torchaudio::_lfilter_core_loop(Tensor input, Tensor a_flipped, Tensor(a!) padded) -> ()": _lfilter_core_loop,
    "torchaudio::_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output) -> ()": _overdrive_core_loop,
    "torchaudio::forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)": _forced_align,
    "torchaudio::rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, bool fused_log_softmax=True) -> (Tensor, Tensor)": _rnnt_loss_forward,
}.items():
    _name, _, _rest = _schema.partition("(")
    define(_name, f"({_rest}")
    impl(_name, "default", _function)


class Facts:
    """The space ``_torchaudio``: what its compiled part can do."""

    @staticmethod
    def is_align_available():
        """True: forced_align is there."""
        return True

    @staticmethod
    def cuda_version():
        """None: nothing of it runs on a GPU."""
