"""Frozen policies as they were when used: rule sets, leak plans, pool plans, selection policies. Judges nothing."""

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.store.models import Policy


def record(session: Session, kind: str, name: str, digest: str, body: dict[str, object]) -> None:
    """Keep a policy under its digest; the same one again changes nothing."""
    session.execute(
        insert(Policy)
        .values(policy_digest=digest, kind=kind, name=name, body=body)
        .on_conflict_do_nothing(index_elements=["policy_digest"])
    )
