"""tests/python/files/pt_files.py: `.pt` files in memory, good ones and such as are made by hand."""

import io
import zipfile

import adjoin


def through(obj, **settings):
    file = io.BytesIO()
    adjoin.save(obj, file)
    file.seek(0)
    return adjoin.load(file, **settings)


def archive(data, storages=(), extra=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("x/data.pkl", data)
        z.writestr("x/version", "3\n")
        for i, storage in enumerate(storages):
            z.writestr(f"x/data/{i}", storage)
        for name, value in extra:
            z.writestr(name, value)
    return file.getvalue()


def load_bytes(data, **settings):
    return adjoin.load(io.BytesIO(data), **settings)
