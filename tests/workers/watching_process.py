"""A process that only watches, and a fault to die of, named by argv[1] as `rushed_worker` reads it."""

import sys

from service.config import Settings
from tests.workers.rushed_worker import plant
from workers import watch
from workers.context import open_context

watch.FLOOR_SECONDS = 0.1
watch.GRADE_SECONDS = 0.1

if __name__ == "__main__":
    plant(sys.argv[1])
    settings = Settings()
    assert settings.database_url is not None
    assert settings.redis_url is not None
    watch.follow(open_context(settings, settings.database_url, settings.redis_url))
