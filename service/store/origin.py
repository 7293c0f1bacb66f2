"""Where a corpus comes from: one source for its whole life, so that made-up and real races never meet. Asks none."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.errors import ErrorCode, SluiceError
from service.store.models import Origin


def bind(session: Session, name: str) -> None:
    """Bind an empty corpus to a source; one that is bound stays with its own."""
    if session.scalar(select(Origin.name)) is None:
        require(session, name)


def require(session: Session, name: str) -> None:
    """Bind an empty corpus to a source, or make sure that this is the one it is bound to.

    Raises:
        SluiceError: BAD_INPUT when the corpus comes from another source.
    """
    bound = session.scalar(select(Origin.name))
    if bound is None:
        session.execute(insert(Origin).values(name=name).on_conflict_do_nothing())
    elif bound != name:
        message = f"this corpus was harvested from {bound!r} and not from {name!r}; use another data folder or database"
        raise SluiceError(ErrorCode.BAD_INPUT, message, bound=bound, asked=name)
