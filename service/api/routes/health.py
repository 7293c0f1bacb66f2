"""`/health` and `/ready`: whether the process is up, and whether all it needs answers."""

import redis
from fastapi import APIRouter
from sqlalchemy.exc import OperationalError

from service.api.context import Here
from service.api.schemas import Health, Ready
from service.errors import ErrorCode, SluiceError
from service.store import migrate

router = APIRouter(tags=["operation"])

REDIS_TIMEOUT_SECONDS = 2.0


@router.get("/health")
def health() -> Health:
    """The process is up; asks nothing of anyone."""
    return Health()


@router.get("/ready")
def ready(context: Here) -> Ready:
    """Database reachable, schema current, Redis reachable; else 503 with what is missing."""
    database = schema_current = False
    try:
        schema_current = migrate.is_current(context.engine)
        database = True
    except OperationalError:
        pass
    found = {
        "database": database,
        "schema_current": schema_current,
        "redis": _redis_answers(context.settings.redis_url),
    }
    if all(found.values()):
        return Ready(database=True, schema_current=True, redis=True)
    missing = ", ".join(name for name, is_well in found.items() if not is_well)
    raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"not ready: {missing}", **found)


def _redis_answers(url: str | None) -> bool:
    if url is None:
        return False
    try:
        with redis.Redis.from_url(url, socket_timeout=REDIS_TIMEOUT_SECONDS) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
