"""bench/gpu/archive.py: what an unpacked archive has of itself: its members with their digests. A checkout has none."""

import hashlib
import json

LIST = "gpu-archive.json"


class Broken(Exception):
    """A member is not what was packed."""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(root):
    """The list, or {} in a checkout."""
    path = root / LIST
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Broken(f"{path} cannot be read ({error}): unpack the archive again") from error


def verify(root):
    """Raises Broken with the members that are missing or changed."""
    wrong = []
    for name, wanted in contents(root).get("files", {}).items():
        path = root / name
        if not path.is_file():
            wrong.append(f"{name} is missing")
        elif digest(path) != wanted:
            wrong.append(f"{name} is not what was packed")
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise Broken(f"the archive is broken: {'; '.join(wrong[:3])}{more}; unpack it again")
