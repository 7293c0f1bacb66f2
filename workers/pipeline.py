"""The pipeline: the order of the stages, and what runs a stage when a message says that there is something to do.

A stage does not know its successor; the table here does. Nothing is kept here: losing every message loses only time.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dramatiq
from dramatiq.middleware import CurrentMessage

from service.queue.broker import send
from service.queue.messages import Message, Stage
from workers.context import Context
from workers.stages import assign, cluster, filter, ingest, snapshot

Handler = Callable[[Sequence[int], Context, str], list[int]]
"""Takes ids, the context and the id of the message; returns ids that the next stage should look at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of the pipeline."""

    stage: Stage
    handler: Handler
    batch: int
    """Ids in one message; 0 for a stage that works on the whole corpus."""


ORDER = (
    Step(Stage.INGEST, ingest.run, batch=60),
    Step(Stage.FILTER, filter.run, batch=300),
    Step(Stage.CLUSTER, cluster.run, batch=0),
    Step(Stage.ASSIGN, assign.run, batch=0),
    Step(Stage.SNAPSHOT, snapshot.run, batch=0),
)


def follow_up(stage: Stage, ids: Sequence[int]) -> list[Message]:
    """Messages to send after a stage has committed.

    Ids go to the next stage. A global stage always wakes the next one: it looks for itself whether anything is due.
    """
    place = [step.stage for step in ORDER].index(stage)
    following = ORDER[place + 1 : place + 2]
    return [
        message
        for step in following
        if (ORDER[place].batch == 0) or (step.batch > 0 and ids)
        for message in messages(step, ids)
    ]


def messages(step: Step, ids: Sequence[int]) -> list[Message]:
    """The messages that hand `ids` to a step, a batch each; one without ids for a global stage."""
    if step.batch == 0:
        return [Message(step.stage)]
    starts = range(0, len(ids), step.batch)
    return [Message(step.stage, tuple(ids[start : start + step.batch])) for start in starts]


def register(context: Context) -> None:
    """Make this process the handler of every stage's messages."""
    context.broker.add_middleware(CurrentMessage())
    for step in ORDER:
        name = step.stage.value
        dramatiq.actor(actor_name=name, queue_name=name, broker=context.broker)(_handling(step, context))


def _handling(step: Step, context: Context) -> Callable[[list[int]], None]:
    def handle(ids: list[int]) -> None:
        message = CurrentMessage.get_current_message()
        assert message is not None
        following = step.handler(ids, context, message.message_id)
        for follower in follow_up(step.stage, following):
            send(context.broker, follower)

    return handle
