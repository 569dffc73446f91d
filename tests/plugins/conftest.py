"""tests/plugins/conftest.py: the paper card's library, compiled once."""

import pytest
from paper import compile_card


@pytest.fixture(scope="session")
def card(tmp_path_factory):
    return compile_card(tmp_path_factory.mktemp("paper_card"))
