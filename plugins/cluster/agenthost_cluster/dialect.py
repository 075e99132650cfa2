"""SQLAlchemy's PostgreSQL, with columns that hold what SQLite's hold."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Cast, Column, Float, Integer, Numeric
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler, PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import (
    PGCompiler_psycopg,
    PGDialect_psycopg,
)


class Types(PGTypeCompiler):
    """INTEGER has 64 bits, REAL is a double, TEXT is compared byte by byte."""

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802 - SQLAlchemy's
        """Take the wide one: tokens and millionths of dollars add up."""
        return "BIGINT"

    def visit_REAL(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802 - SQLAlchemy's
        """Take the exact one: a moment has more digits than four bytes hold."""
        return "DOUBLE PRECISION"

    def visit_TEXT(self, type_: Any, **kw: Any) -> str:  # noqa: N802 - SQLAlchemy's
        """Sort a column's words alike, however the database was made."""
        written = str(super().visit_TEXT(type_, **kw))
        in_table = isinstance(kw.get("type_expression"), Column)
        return f'{written} COLLATE "C"' if in_table else written


class Tables(PGDDLCompiler):
    """How tables are made."""

    def get_column_specification(self, column: Column[Any], **kw: Any) -> str:
        """Number rows with 64 bits too."""
        inherited: Any = super().get_column_specification
        written = str(inherited(column, **kw))
        return written.replace(" SERIAL", " BIGSERIAL")


class Statements(PGCompiler_psycopg):
    """How statements read."""

    def visit_cast(self, cast: Cast[Any], **kw: Any) -> str:
        """Cut off what an integer has no place for, where PostgreSQL would round."""
        inherited: Any = super().visit_cast
        written = str(inherited(cast, **kw))
        fraction = isinstance(cast.clause.type, Numeric | Float)
        if not fraction or not isinstance(cast.type, Integer):
            return written
        return f"CAST(trunc({self.process(cast.clause, **kw)}) AS BIGINT)"


class Dialect(PGDialect_psycopg):
    """PostgreSQL as the store speaks it."""

    supports_statement_cache = True
    # psycopg sends a number as wide as it is, and functions of the server, which
    # SQLAlchemy asks of its tables, take some that are no wider than an INTEGER there.
    colspecs = PGDialect_psycopg.colspecs | {Integer: Integer}
    type_compiler_cls = Types
    ddl_compiler = Tables
    statement_compiler = Statements


def made(**options: Any) -> Dialect:
    """Make the dialect; an extension of the server is not asked for at each start."""
    return Dialect(use_native_hstore=False, **options)  # type: ignore[no-untyped-call]
