"""tests/packages/conftest.py: the wheel, made once; the tools of tests/abi and the simulated card serve here too."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "packages"), str(TESTS / "plugins")]
sys.path.insert(0, str(TESTS / "abi"))

import wheels


@pytest.fixture(scope="session")
def built():
    return wheels.make()


@pytest.fixture(scope="session")
def wheel(built):
    return wheels.newest(built, "adjoin-*.whl")


@pytest.fixture(scope="session")
def card(tmp_path_factory):
    from paper import compile_card

    return compile_card(tmp_path_factory.mktemp("paper_card"))
