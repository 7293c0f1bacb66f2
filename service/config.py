"""Where things run: the environment, read once. What the data mean (rules, thresholds, shares) is never set here."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

LIVE_SOURCE_URL = "https://api.oroagents.com"
LIVE_RATE_PER_MINUTE = 50
"""Half of the ~100 requests a minute that one address gets: the validator beside us needs the rest."""

WORKER_STOP_SECONDS = 20.0
"""A worker that is told to stop gives its handlers, and then its loops, so long to end."""

_POOLS_OF_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables by which libraries bound their thread pools; a child gets one thread of each unless told otherwise."""

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class Settings(BaseSettings):
    """Environment variables `SLUICE_*`. Entry points build it once and pass it down."""

    model_config = SettingsConfigDict(env_prefix="SLUICE_", frozen=True, extra="ignore")

    data_dir: Path = Path("sluice-data")
    """Folder of snapshots and, with no URLs set, of the private Postgres and Valkey."""
    database_url: str | None = None
    """`postgresql://...`; None starts a private Postgres below `data_dir`."""
    redis_url: str | None = None
    """`redis://...` or `unix://...`; None starts a private Valkey below `data_dir`."""
    source_url: str = LIVE_SOURCE_URL
    """Base URL of ORO's public API."""
    source_name: str | None = None
    """Name of the source, to which a corpus stays bound; None is the host in `source_url`."""
    rate_per_minute: int | None = Field(default=None, ge=0)
    """Requests per minute against the source; 0 is unthrottled; None means 50, or 0 for a loopback source."""
    object_hosts: tuple[str, ...] = ()
    """Extra hosts from which presigned objects may be fetched, beside the source itself and Amazon S3."""
    poll_seconds: float = Field(default=300.0, gt=0)
    """Pause between two walks over the source's races."""
    release_interval_seconds: float = Field(default=21_600.0, ge=0)
    """Least time between two snapshots made without being asked for; 0 releases whenever the harvest rests."""
    validator_logs: Path | None = None
    """Folder in which the validator beside us keeps its runs (`eval_*`, `environment-runs`); None follows none."""
    proxy_log: Path | None = None
    """Access log of the validator's proxy; None follows none."""
    proxy_log_format: str = "combined"
    """`combined`, or the format of that log in nginx's own syntax."""
    host: str = "127.0.0.1"
    port: int = Field(default=8715, ge=0, le=65535)
    """Port of the REST service; 0 takes a free one."""
    worker_processes: int = Field(default=1, ge=0)
    worker_threads: int = Field(default=4, ge=1)
    subtensor: str | None = None
    """Network name (`finney`, `test`, `local`) or `ws://` URL of a Bittensor node; None follows no chain."""
    netuid: int = Field(default=15, ge=0)
    """Subnet whose metagraph is read."""
    hotkey_salt: str | None = Field(default=None, min_length=16, repr=False)
    """Secret by which snapshots that ask for it name miners; None: none can ask for it."""
    niceness: int = Field(default=10, ge=0, le=19)
    """How far worker processes stand back when processors are scarce; 0 leaves them as they were started."""
    parent_pid: int | None = None
    """Process that a worker does not outlive; `sluice up` gives its own to its workers."""
    log_level: str = "INFO"

    @property
    def snapshot_dir(self) -> Path:
        """Folder of published snapshots."""
        return self.data_dir / "snapshots"

    @property
    def origin(self) -> str:
        """Name of the source that the corpus comes from. Ports do not matter: a replay takes any that is free."""
        return self.source_name or urlsplit(self.source_url).hostname or self.source_url

    @property
    def requests_per_minute(self) -> int:
        """The rate to keep against the source; 0 is unthrottled."""
        if self.rate_per_minute is not None:
            return self.rate_per_minute
        return 0 if urlsplit(self.source_url).hostname in LOOPBACK_HOSTS else LIVE_RATE_PER_MINUTE

    def environment(self) -> dict[str, str]:
        """The process environment with these settings in it, for a child process that reads its own `Settings`."""
        bounded = dict.fromkeys(_POOLS_OF_LIBRARIES, "1")
        told = {name: value for name, value in self.model_dump(mode="json").items() if value is not None}
        spelt = {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}
        return {**bounded, **os.environ, **{f"SLUICE_{name.upper()}": value for name, value in spelt.items()}}
