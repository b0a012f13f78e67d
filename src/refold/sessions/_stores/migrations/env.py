"""Runs the steps on the connection that the store has open, inside its transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table=context.config.attributes["table"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
