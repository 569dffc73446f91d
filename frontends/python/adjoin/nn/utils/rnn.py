"""adjoin.nn.utils.rnn: sequences of different lengths in one tensor."""

import adjoin


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (L_i, *) as one of (max L, N, *), or (N, max L, *), filled up with
    ``padding_value``."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: padding_side is {padding_side!r}; left or right is wanted"
        )
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
