import pytest

from refold.sessions import MemoryStore
from tests.stores.contract import Contract


class TestMemoryStore(Contract):
    @pytest.fixture
    def store(self, clock):
        return MemoryStore(clock)
