"""Agent code: ask for the source of agent versions once it is released, and keep it. Runs and reads none of it.

A few versions at a time, each stored in a transaction of its own: whoever is killed has at most asked once in vain.
"""

import logging
from datetime import datetime, timedelta

from service.source.answers import Refused
from service.source.http.calls import SourceRefused
from service.source.refusals import Refusal
from service.store.engine import reading, transaction
from service.store.harvest import agent_code
from service.store.harvest.agent_code import CodeTarget
from service.store.harvest.ledger import Note
from workers.context import Context
from workers.retries import note_of

VERSIONS_AT_ONCE = 25
"""Two requests each at most: a minute of the budget after a walk."""
GRACE = timedelta(minutes=1)
"""Code is asked for so long after the time that it was announced for: clocks differ."""
LONGEST_WAIT = timedelta(days=7)
"""A release that is announced for later is looked at again: it may have been brought forward."""

log = logging.getLogger(__name__)


def collect(context: Context) -> int:
    """Ask for the code of some agent versions that ran; returns how many gave it.

    Raises:
        SluiceError: STOPPING.
    """
    with reading(context.engine) as session:
        targets = agent_code.due(session, context.now(), VERSIONS_AT_ONCE)
    given = 0
    for target in targets:
        answer = context.source.agent_code(target.agent_version_id)
        if isinstance(answer, Refused):
            with transaction(context.engine) as session:
                agent_code.note_refusal(session, target, _note(target, answer, context))
            if answer.reason.is_about_source:
                log.warning("the code of agents cannot be asked for: %s", answer.reason)
                break
            continue
        with transaction(context.engine) as session:
            agent_code.add(session, target, answer.payload, context.now())
        given += 1
    return given


def _note(target: CodeTarget, refused: Refused, context: Context) -> Note:
    note = note_of(refused, target.reason, target.attempts, context.now())
    if refused.reason is not Refusal.NOT_RELEASED:
        return note
    announced = _announced(target, context)
    if announced is None or announced <= context.now():
        return note
    return note._replace(next_try_at=min(announced + GRACE, context.now() + LONGEST_WAIT))


def _announced(target: CodeTarget, context: Context) -> datetime | None:
    """When the code is to be released; None where the source does not say."""
    try:
        return context.source.code_release(target.agent_version_id).available_at
    except SourceRefused as refused:
        log.info("agent version %.60r does not say when it is released: %s", target.agent_version_id, refused.reason)
        return None
