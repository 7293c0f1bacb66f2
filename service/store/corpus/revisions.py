"""Numbered states of the corpus. Orders what readers see, whatever the order in which writers commit."""

from sqlalchemy import exists, func, or_, select, text, update
from sqlalchemy.orm import Session

from service.store.models import AgentLink, CorpusRevision, Tombstone, Verdict


def open_revision(session: Session) -> int:
    """The revision that new verdicts, tombstones and links join; it cannot be sealed before this transaction ends."""
    statement = select(CorpusRevision.revision).where(CorpusRevision.sealed_at.is_(None)).with_for_update(read=True)
    while True:
        # A writer that waited for a sealing finds the row it waited for closed, and asks again for the new one.
        revision = session.scalar(statement)
        if revision is not None:
            return revision


def seal(session: Session) -> int:
    """Close the open revision once its writers have committed, and open the next. Returns the sealed number."""
    revision = session.scalar(
        select(CorpusRevision.revision).where(CorpusRevision.sealed_at.is_(None)).with_for_update()
    )
    session.execute(update(CorpusRevision).where(CorpusRevision.revision == revision).values(sealed_at=func.now()))
    session.execute(text("INSERT INTO corpus_revisions DEFAULT VALUES"))
    assert revision is not None
    return revision


def has_unsealed_rows(session: Session) -> bool:
    """Whether verdicts, tombstones or links of agents have been added since the last sealing."""
    open_number = select(CorpusRevision.revision).where(CorpusRevision.sealed_at.is_(None)).scalar_subquery()
    added = (
        exists().where(Verdict.revision == open_number),
        exists().where(Tombstone.revision == open_number),
        exists().where(AgentLink.revision == open_number),
    )
    return bool(session.scalar(select(or_(*added))))


def last_sealed(session: Session) -> int:
    """The newest sealed revision; 0 before the first."""
    return session.scalar(select(func.max(CorpusRevision.revision)).where(CorpusRevision.sealed_at.is_not(None))) or 0
