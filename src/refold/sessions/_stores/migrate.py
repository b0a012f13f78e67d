"""Migrates a store to the schema of this release, when it is opened first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from refold.errors import StoreCorrupt, StoreError, StoreTooNew
from refold.sessions._stores.store_errors import map_database_errors

if TYPE_CHECKING:
    from refold.sessions._stores.engines import Database

__all__ = ["FOLDER", "revisions", "upgrade"]

FOLDER = Path(__file__).parent / "migrations"
TABLE = "refold_version"


def revisions() -> tuple[str, ...]:
    """Return the versions a store may have, oldest first."""
    return tuple(sorted(re.sub(r"^v", "", file.stem) for file in (FOLDER / "versions").glob("v*.py")))


def upgrade(database: Database, to: str = "") -> None:
    """Migrate a store to a version, the newest by default, in one transaction.

    Raises:
        StoreTooNew: a later release wrote it.
        StoreCorrupt: it is not a database of refold.
        StoreError: it is of another version, and opened for reading alone.
    """
    goal = to or revisions()[-1]
    with map_database_errors(database.name), database.engine.connect() as plain:
        with plain.begin():
            version = _version(database, plain)
            if version == goal:
                return
        if database.read_only:
            raise StoreError(
                f"{database.name} has {f'version {version}' if version else 'no tables'}, not {goal}, and is "
                "opened for reading alone: migrate it with `refold sessions list --store …`, or name another"
            )
        connection = plain.execution_options(writing=True)
        with connection.begin():
            database.hold(connection, alone=True)
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS refold")
            if _version(database, connection) != goal:  # no other process did it first
                _run(database, connection, goal)


def _version(database: Database, connection: Connection) -> str | None:
    tables = inspect(connection).get_table_names()
    if TABLE not in tables:
        if tables:
            raise StoreCorrupt(
                f"{database.name} is a database of something else (it has the table {tables[0]}) and was left as it "
                "is: name another file"
            )
        return None
    version: str | None = connection.execute(text(f"SELECT version_num FROM {TABLE}")).scalar()  # noqa: S608 - a constant
    if version is not None and version not in revisions():
        raise StoreTooNew(
            f"{database.name} has version {version}, and this release knows those up to {revisions()[-1]}: "
            "install a newer refold"
        )
    return version


def _run(database: Database, connection: Connection, goal: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "database": database, "table": TABLE})
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, goal)
