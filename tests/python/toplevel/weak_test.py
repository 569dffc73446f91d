"""tests/python/toplevel/weak_test.py: adjoin.utils.weak: dictionaries by identity that keep no key alive."""

import copy
import gc

import adjoin
import pytest
from adjoin.utils.weak import WeakIdKeyDictionary


def test_keys_are_objects_and_leave_with_them():
    a, b = adjoin.ones(2), adjoin.ones(2)
    found = WeakIdKeyDictionary({a: 1, b: 2})
    assert (found[a], found[b], len(found)) == (1, 2, 2) and adjoin.ones(2) not in found
    del a
    gc.collect()
    assert list(found.values()) == [2]


def test_deep_copies_have_the_same_keys_and_values_of_their_own():
    a = adjoin.ones(2)
    found = WeakIdKeyDictionary({a: [1]})
    made = copy.deepcopy(found)
    made[a].append(2)
    assert found[a] == [1] and made[a] == [1, 2] and type(made) is WeakIdKeyDictionary


def test_dictionaries_are_joined():
    a, b = adjoin.ones(2), adjoin.ones(2)
    first, second = WeakIdKeyDictionary({a: 1, b: 1}), WeakIdKeyDictionary({b: 2})
    assert (first | second)[b] == 2 and (first | {b: 3})[b] == 3 and ({b: 3} | first)[b] == 1 and first[b] == 1
    first |= second
    assert first[b] == 2 and first[a] == 1
    with pytest.raises(TypeError):
        first | 5
