"""adjoin.utils.tensorboard._projector: vectors with names and pictures, as files that TensorBoard's projector reads."""

import math
import os

import adjoin

from . import _pictures


def _lines(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("\t".join(str(x) for x in row) + "\n" for row in rows)


def write(folder, place, name, vectors, labels, header, pictures):
    """Writes tensors.tsv, metadata.tsv and sprite.png into folder/place, and adds them to the folder's list."""
    vectors = _pictures.as_tensor(vectors)
    if vectors.dim() != 2:
        raise ValueError(f"add_embedding: mat has {vectors.dim()} dimensions; a matrix is wanted, a vector in each row")
    inside = os.path.join(folder, place)
    os.makedirs(inside, exist_ok=True)
    _lines(os.path.join(inside, "tensors.tsv"), vectors.tolist())
    told = [f'tensor_name: "{name}"', f'tensor_path: "{place}/tensors.tsv"']
    if labels is not None:
        if len(labels) != len(vectors):
            raise ValueError(f"add_embedding: there are {len(labels)} labels and {len(vectors)} vectors")
        rows = [[x] for x in labels] if header is None else [header, *labels]
        _lines(os.path.join(inside, "metadata.tsv"), rows)
        told.append(f'metadata_path: "{place}/metadata.tsv"')
    if pictures is not None:
        if len(pictures) != len(vectors):
            raise ValueError(f"add_embedding: there are {len(pictures)} pictures and {len(vectors)} vectors")
        height, width = pictures.shape[2:]
        with open(os.path.join(inside, "sprite.png"), "wb") as file:
            file.write(_pictures.png(_pictures.to_pixels(_sheet(pictures), "CHW")))
        told.append(
            f'sprite {{\n  image_path: "{place}/sprite.png"\n  single_image_dim: {width}\n  single_image_dim: {height}\n}}'
        )
    with open(os.path.join(folder, "projector_config.pbtxt"), "a", encoding="utf-8") as file:
        file.write("embeddings {\n" + "\n".join(told) + "\n}\n")


def _sheet(pictures):
    """The pictures [N, C, H, W] in one square of rows and columns."""
    pictures = _pictures.as_tensor(pictures)
    side = math.ceil(math.sqrt(len(pictures)))
    missing = side * side - len(pictures)
    if missing:
        pictures = adjoin.cat([pictures, adjoin.zeros(missing, *pictures.shape[1:], dtype=pictures.dtype)])
    n, c, h, w = pictures.shape
    return pictures.reshape(side, side, c, h, w).permute(2, 0, 3, 1, 4).reshape(c, side * h, side * w)
