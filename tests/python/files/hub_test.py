"""tests/python/files/hub_test.py: downloads from a server of the test's own: whole or not at all, hashes checked, kept."""

import hashlib
import http.server
import threading

import adjoin
import pytest
from adjoin import hub, safetensors


@pytest.fixture
def site():
    """A folder of bytes by path; a path in ``short`` ends too early."""

    class Handler(http.server.BaseHTTPRequestHandler):
        files, short, asked = {}, set(), []

        def do_GET(self):
            self.asked.append(self.path)
            data = self.files.get(self.path.split("?")[0])
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if self.path in self.short else data)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    Handler.url = f"http://127.0.0.1:{server.server_port}"
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_download(site, tmp_path, capsys):
    data = bytes(range(256)) * 2000
    site.files["/a.bin"] = data
    digest = hashlib.sha256(data).hexdigest()
    hub.download_url_to_file(site.url + "/a.bin", tmp_path / "a.bin", digest[:8])
    assert (tmp_path / "a.bin").read_bytes() == data and "100%" in capsys.readouterr().err
    hub.download_url_to_file(site.url + "/a.bin", tmp_path / "b.bin", progress=False)
    assert capsys.readouterr().err == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "b.bin"]


def test_nothing_is_left_of_a_bad_one(site, tmp_path):
    site.files["/a.bin"] = bytes(1000)
    site.short.add("/a.bin")
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises((RuntimeError, OSError)):
        hub.download_url_to_file(site.url + "/a.bin", target, progress=False)
    site.short.clear()
    with pytest.raises(RuntimeError, match='invalid hash value .expected "0123"'):
        hub.download_url_to_file(site.url + "/a.bin", target, "0123", progress=False)
    with pytest.raises(OSError, match="404"):
        hub.download_url_to_file(site.url + "/none", target, progress=False)
    assert target.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_weights(site, tmp_path, monkeypatch):
    data = safetensors.save({"w": adjoin.arange(3.0)})
    name = f"/net-{hashlib.sha256(data).hexdigest()[:8]}.safetensors"
    site.files[name] = data
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("ADJOIN_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    for _ in range(2):  # the second time from the folder
        state = hub.load_state_dict_from_url(site.url + name + "?raw=1", progress=False, check_hash=True)
        assert state["w"].tolist() == [0, 1, 2]
    assert len(site.asked) == 1 and (tmp_path / "hub" / "checkpoints" / name[1:]).exists()
    hub.set_dir(tmp_path / "elsewhere")
    hub.load_state_dict_from_url(site.url + name, progress=False, file_name="own.safetensors")
    assert (tmp_path / "elsewhere" / "checkpoints" / "own.safetensors").exists()
    site.files["/bad-00000000.safetensors"] = data
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.load_state_dict_from_url(site.url + "/bad-00000000.safetensors", progress=False, check_hash=True)
