import asyncio
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from refold._gateway.conversations.plan_store import PlanStore
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.core.budget import Share
from refold.testing.provider import ScriptedProvider
from tests.gateway import controlled_policy
from tests.gateway.scripted_upstream import ADMIN, call
from tests.gateway.talking import OPENED

AT_ONCE = Share(0.8, inclusive=True)


@contextmanager
def standing(provider, **settings):
    """A gateway before a provider, for all dialects; the default policy does not wait until a compaction pays."""
    if "policy" not in settings:
        settings.setdefault("trigger", AT_ONCE)
    settings.setdefault("admin_token", ADMIN)
    upstreams = {"openai": provider.openai_url, "anthropic": provider.url, "gemini": provider.url}
    with Serving(GatewaySettings(upstreams=upstreams, port=0, **settings)) as serving:
        yield serving


@pytest.fixture
def gateway():
    """Start a provider with answers, and a gateway before it: returns both."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def make(answers=None, *, behave=None, limit=None, faults=(), key=None, max_bytes=32 * 1024 * 1024, **settings):
            provider = stack.enter_context(
                ScriptedProvider(answers, behave=behave, window=limit, faults=faults, key=key, max_bytes=max_bytes)
            )
            return stack.enter_context(standing(provider, **settings)), provider

        yield make


@pytest.fixture
def deleted_while_rewound(monkeypatch):
    """Let somebody delete every conversation as soon as a rewind of it is stored, before that is answered."""
    rewound = PlanStore.rewound

    def begin(url):
        async def stored(keeper, id, *given, **more):
            revision = await rewound(keeper, id, *given, **more)
            assert (await asyncio.to_thread(call, url, "DELETE", f"/v1/sessions/{id}"))[0] == 200
            return revision

        monkeypatch.setattr(PlanStore, "rewound", stored)

    return begin


@pytest.fixture
def controlled(tmp_path):
    """A policy whose compactions begin with the calls in `actions`; `path` names it in the settings of a gateway."""
    yield SimpleNamespace(path=controlled_policy.written_to(tmp_path), actions=controlled_policy.actions)
    controlled_policy.actions.clear()


@pytest.fixture(autouse=True)
def _closed_clients():
    """Sockets of a client that nobody closes are found by the collector, in whatever test runs then."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture(autouse=True)
def _quiet_models():
    """SDKs warn of models that they think are old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
