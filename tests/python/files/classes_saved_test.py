"""tests/python/files/classes_saved_test.py: what a class adds to its tensors or tuples is saved with them: slots, a state of its own, no memory."""

import collections
import copy
import io
import pickle
import tempfile

import adjoin
import pytest
from adjoin import serialization

Point = collections.namedtuple("Point", "x y")
ZIPPED = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])


class Outside(adjoin.Tensor):
    """A tensor without memory, whose values stand in a slot."""

    __slots__ = ["values_kept"]

    @staticmethod
    def __new__(cls, values):
        made = adjoin.Tensor._make_subclass(cls, values.to("meta"), values.requires_grad)
        made.values_kept = values
        return made

    def clone(self):
        return type(self)(self.values_kept.clone())


class Stated(Outside):
    """One that says itself what it is."""

    __slots__ = []

    def __getstate__(self):
        return ("kept", self.values_kept, self.__dict__)

    def __setstate__(self, state):
        mark, self.values_kept, self.__dict__ = state
        assert mark == "kept"
        self.again = True


def through(obj, zipped=True, known=(), **settings):
    file = io.BytesIO()
    adjoin.save(obj, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    with serialization.safe_globals(list(known)):
        return adjoin.load(file, **settings)


@ZIPPED
def test_a_named_tuple_is_one_object(zipped):
    made = through([Point(adjoin.ones(2), 3)], zipped, [Point])
    assert type(made[0]) is Point and made[0].x.tolist() == [1, 1] and made[0].y == 3


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("kind", [Outside, Stated])
def test_slots_and_a_state_of_ones_own_are_saved(kind, trusted):
    tensor = kind(adjoin.arange(3.0))
    tensor.note = "n"
    made = through(tensor, True, [kind], **({"pickle_module": pickle} if trusted else {}))
    assert type(made) is kind and made.is_meta and made.shape == (3,)
    assert made.values_kept.tolist() == [0, 1, 2] and made.note == "n"
    assert getattr(made, "again", False) is (kind is Stated)


@pytest.mark.parametrize("kind", [Outside, Stated])
def test_copies_have_the_slots_too(kind):
    tensor = kind(adjoin.arange(3.0))
    tensor.note = ["n"]
    shallow, deep = copy.copy(tensor), copy.deepcopy(tensor)
    assert type(shallow) is type(deep) is kind
    assert shallow.values_kept is tensor.values_kept and shallow.note is tensor.note
    assert deep.values_kept is not tensor.values_kept and deep.values_kept.tolist() == [0, 1, 2]
    assert deep.note == ["n"] and deep.note is not tensor.note
    again = pickle.loads(pickle.dumps(tensor))
    assert type(again) is kind and again.values_kept.tolist() == [0, 1, 2] and again.note == ["n"]


@ZIPPED
def test_empty_tensors_keep_their_dtypes(zipped):
    row = adjoin.tensor([], dtype=adjoin.float64)
    other = adjoin.TypedStorage(wrap_storage=row.untyped_storage(), dtype=adjoin.float32)
    first, second, third = through([row, other, row.view(adjoin.int16)], zipped)
    assert first.dtype is adjoin.float64 and second.dtype is adjoin.float32 and third.dtype is adjoin.int16


@ZIPPED
def test_what_is_saved_to_an_open_file_is_there_for_others(zipped):
    with tempfile.NamedTemporaryFile() as file:
        adjoin.save(adjoin.arange(4.0), file, _use_new_zipfile_serialization=zipped)
        assert adjoin.load(file.name).tolist() == [0, 1, 2, 3]


def test_an_archive_of_a_program_is_told_from_a_file_of_tensors():
    layer = adjoin.nn.Linear(3, 2)
    file = io.BytesIO()
    adjoin.jit.save(adjoin.jit.script(layer), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="weights_only=True.*TorchScript archives.*jit.load"):
        adjoin.load(file, weights_only=True)
    file.seek(0)
    with pytest.warns(UserWarning, match=r"jit\.load"):
        made = adjoin.load(file, weights_only=False)
    x = adjoin.ones(1, 3)
    assert made(x).tolist() == layer(x).tolist()
    broken = io.BytesIO(b"PK\3\4" + bytes(30))
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        adjoin.load(broken)
