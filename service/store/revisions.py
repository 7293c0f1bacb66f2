"""Numbered states of the corpus. Orders what readers see, whatever the order in which writers commit."""

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from service.store.models import CorpusRevision, Verdict


def open_revision(session: Session) -> int:
    """The revision that new verdicts join; it cannot be sealed before this transaction ends."""
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


def has_unsealed_verdicts(session: Session) -> bool:
    """Whether verdicts have been added since the last sealing."""
    open_number = select(CorpusRevision.revision).where(CorpusRevision.sealed_at.is_(None)).scalar_subquery()
    return session.scalar(select(Verdict.verdict_id).where(Verdict.revision == open_number).limit(1)) is not None


def last_sealed(session: Session) -> int:
    """The newest sealed revision; 0 before the first."""
    return session.scalar(select(func.max(CorpusRevision.revision)).where(CorpusRevision.sealed_at.is_not(None))) or 0
