"""What every route works with: the engine, the policies in force, the files. Holds no state between requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES, Policies
from service.store.engine import reading
from service.store.release.files import FileStore


@dataclass(frozen=True, slots=True)
class Context:
    """Built once, by whoever starts the service."""

    engine: Engine
    settings: Settings
    policies: Policies = DEFAULT_POLICIES

    @property
    def files(self) -> FileStore:
        """The published snapshots."""
        return FileStore(self.settings.snapshot_dir)

    @property
    def rules_digest(self) -> str:
        """Rule set whose verdicts are shown."""
        return self.policies.rules.digest


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Here = Annotated[Context, Depends(_context)]


def _session(context: Here) -> Iterator[Session]:
    with reading(context.engine) as session:
        yield session


Reading = Annotated[Session, Depends(_session, scope="function")]
"""A read-only transaction that ends before the response is sent: a slow client holds no connection."""
