import pytest

from refold.sessions import MemoryStore, open_store


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
        return
    with open_store(tmp_path / "sessions.db") as opened:
        yield opened
