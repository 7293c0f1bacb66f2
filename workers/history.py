"""Ask SN15 now and then how many trajectories there are, for coverage to be held against. Nothing waits for it."""

import logging
from datetime import timedelta

from service.source.http.calls import SourceRefused
from service.store.engine import reading, transaction
from service.store.harvest import trajectory_history
from workers.context import Context

ASK_AFTER = timedelta(hours=1)

log = logging.getLogger(__name__)


def read(context: Context) -> None:
    """Read the count if the last one is an hour old.

    Raises:
        SluiceError: STOPPING.
    """
    with reading(context.engine) as session:
        last = trajectory_history.newest(session)
        if last is not None and context.now() - last.read_at < ASK_AFTER:
            return
    try:
        told = context.source.trajectory_history()
    except SourceRefused as refused:
        log.warning("the count of trajectories cannot be had: %s", refused.reason)
        return
    with transaction(context.engine) as session:
        trajectory_history.note(session, told.total, told.series, context.now())
