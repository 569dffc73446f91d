"""adjoin.nn.utils.rnn: sequences of different lengths in one tensor, padded or packed."""

from collections import namedtuple

import adjoin

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """Sequences by falling length, step by step: ``data`` has the first elements of all, then the
    second elements of those that have one; ``batch_sizes`` says how many each step has.

    ``sorted_indices`` is the order that the sequences were brought into, ``unsorted_indices`` the
    way back; None where they were in order.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same on another device or in another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order, back = (None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, order, back)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device="cuda"):
        return self.to(device)

    def double(self):
        return self.to(adjoin.float64)

    def float(self):
        return self.to(adjoin.float32)

    def half(self):
        return self.to(adjoin.float16)

    def long(self):
        return self.to(adjoin.int64)

    def int(self):
        return self.to(adjoin.int32)

    def short(self):
        return self.to(adjoin.int16)

    def char(self):
        return self.to(adjoin.int8)

    def byte(self):
        return self.to(adjoin.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The order that brings back what ``permutation`` reordered; None of None."""
    if permutation is None:
        return None
    places = adjoin.arange(permutation.numel(), device=permutation.device)
    return adjoin.empty_like(permutation).scatter_(0, permutation, places)


def _spans(batch_sizes):
    """(batch, first step, step after the last) of the steps with the same batch, in order."""
    spans, first = [], 0
    for step, batch in enumerate(batch_sizes):
        if step + 1 == len(batch_sizes) or batch_sizes[step + 1] != batch:
            spans.append((batch, first, step + 1))
            first = step + 1
    return spans


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """A PackedSequence of padded sequences (T, B, *), or (B, T, *); those of falling length need no
    sorting."""
    lengths = adjoin.as_tensor(lengths, dtype=adjoin.int64)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device.type} tensor"
        )
    order = None
    if not enforce_sorted:
        lengths, order = adjoin.sort(lengths, descending=True, stable=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    values = lengths.tolist()
    if len(values) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} (batch_size={input.size(1)})"
        )
    if not values:
        raise RuntimeError("Cannot pack empty tensors.")
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(values, values[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if values[0] > input.size(0):
        raise RuntimeError(
            f"Expected all lengths to be at most {input.size(0)}, the number of steps, but got {values[0]}"
        )
    batch_sizes = [0] * values[0]
    alive = len(values)
    for step in range(values[0]):
        while values[alive - 1] <= step:
            alive -= 1
        batch_sizes[step] = alive
    rest = tuple(input.shape[2:])
    parts = [
        input[first:last, :batch].reshape(((last - first) * batch, *rest)) for batch, first, last in _spans(batch_sizes)
    ]
    data = parts[0] if len(parts) == 1 else adjoin.cat(parts)
    return PackedSequence(data, adjoin.tensor(batch_sizes), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded, lengths) of a PackedSequence, in the order before packing."""
    batch_sizes = sequence.batch_sizes.tolist()
    steps, batch, data = len(batch_sizes), batch_sizes[0], sequence.data
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    rest = tuple(data.shape[1:])
    padded = data.new_full((steps, batch, *rest), padding_value)
    at = 0
    for size, first, last in _spans(batch_sizes):
        count = (last - first) * size
        padded[first:last, :size] = data[at : at + count].reshape((last - first, size, *rest))
        at += count
    lengths = [sum(size > i for size in batch_sizes) for i in range(batch)]
    lengths = adjoin.tensor(lengths)
    if batch_first:
        padded = padded.transpose(0, 1)
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pack_sequence(sequences, enforce_sorted=True):
    """A PackedSequence of tensors (L_i, *)."""
    lengths = adjoin.tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The tensors that pack_sequence() packed, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (L_i, *) as one of (max L, N, *), or (N, max L, *), filled up with
    ``padding_value``."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: padding_side is {padding_side!r}; left or right is wanted")
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: sequences is {type(sequences).__name__}; a list of tensors is wanted")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences; give one at least")
    longest = max(sequence.size(0) for sequence in sequences)
    rows = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            filler = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            pair = [sequence, filler] if padding_side == "right" else [filler, sequence]
            sequence = adjoin.cat(pair)
        rows.append(sequence)
    return adjoin.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences that pad_sequence() put together, of the given lengths, as a list."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    lengths = lengths.tolist() if isinstance(lengths, adjoin.Tensor) else lengths
    return [row[:length] for row, length in zip(padded_sequences, lengths, strict=True)]
