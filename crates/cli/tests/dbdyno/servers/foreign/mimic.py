"""A server that speaks MySQL's protocol and keeps its rows in SQLite: mysql-mimic, on the port that
is its only argument. What SQLite does not take is an error."""

import asyncio
import sqlite3
import sys

from mysql_mimic import MysqlServer, Session
from sqlglot import expressions as exp

ROWS = sqlite3.connect(":memory:", isolation_level=None)
DATABASES = {}


class OnSqlite(Session):
    async def query(self, expression, sql, attrs):
        if isinstance(expression, exp.Create) and expression.kind in ("DATABASE", "SCHEMA"):
            DATABASES.setdefault(expression.this.name, {})
            return [], []
        for table in expression.find_all(exp.Table):
            table.set("db", None)
        found = ROWS.execute(expression.sql(dialect="sqlite"))
        return found.fetchall(), [column[0] for column in found.description or []]

    async def schema(self):
        tables = {}
        for (name,) in ROWS.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = ROWS.execute(f"PRAGMA table_info({name})").fetchall()
            tables[name] = {column[1]: column[2] or "TEXT" for column in columns}
        return {name: tables for name in DATABASES} or {"none": {}}


async def main():
    server = MysqlServer(session_factory=OnSqlite)
    await server.start_server(host="127.0.0.1", port=int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
