import pytest

from tests.gateway.recall.models import WINDOW


@pytest.fixture
def serving(gateway):
    """Start a gateway that offers the tool before a model; returns its address and the provider."""

    def make(model, **settings):
        given = {"limit": WINDOW, "window": WINDOW, "recall_tool": True, "background": False} | settings
        started, provider = gateway(behave=model, **given)
        return started.url, provider

    return make
