"""tests/frontends/conftest.py: what the tests of several languages start from."""

from pathlib import Path

import pytest
from building import config


@pytest.fixture(scope="session")
def defines():
    """The file of a libadjoin in which a program that is no plugin can define ops."""
    library = Path(config("--libdir")) / "libadjoin.so"
    if b"x.plugins" not in library.read_bytes():
        pytest.skip("this libadjoin has no x.plugins, through which a program defines ops")
    return library


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """The pictures as `--data` writes them, for every language."""
    from adjoin.demo import digits as demo

    path = tmp_path_factory.mktemp("digits") / "digits.safetensors"
    demo.main(["--data", str(path)])
    return path
