"""Users come and go: who starts the servers, who joins, who stops them."""

import signal
from pathlib import Path

import psutil
import pytest
import redis

from service import embedded
from service.embedded import session
from service.errors import ErrorCode, SluiceError
from tests.embedded.conftest import DataDir, connect, until


def test_both_servers_answer_and_keep_what_was_written(new_dir: DataDir) -> None:
    with embedded.start(new_dir.path) as urls:
        with connect(urls) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 15 AS netuid")
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        with redis.Redis.from_url(urls.redis_url) as client:
            client.set("netuid", 15)
    assert new_dir.is_quiet
    with embedded.start(new_dir.path) as urls:
        with connect(urls) as connection:
            assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
        with redis.Redis.from_url(urls.redis_url) as client:
            assert client.get("netuid") == b"15"


def test_servers_that_cannot_be_reached_refuse_by_pid(used_dir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "JOIN_TIMEOUT_SECONDS", 0.3)
    with embedded.start(used_dir.path) as urls:
        sockets = Path(urls.database_url.split("host=")[1])
        sockets.rename(sockets.with_name("elsewhere"))  # as for a container that shares the data folder alone
        with pytest.raises(SluiceError, match=str(used_dir.supervisor_pid)) as refusal, embedded.start(used_dir.path):
            pass
        assert refusal.value.code == ErrorCode.DATA_DIR_IN_USE
        sockets.with_name("elsewhere").rename(sockets)
        with connect(urls) as connection:
            assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)


def test_servers_listen_on_no_port(used_dir: DataDir) -> None:
    with embedded.start(used_dir.path):
        pids = [used_dir.postmaster_pid, *used_dir.valkey_pids, used_dir.supervisor_pid]
        assert len(pids) == 3
        assert [psutil.Process(pid).net_connections("inet") for pid in pids] == [[], [], []]


def test_two_starts_at_once_share_one_pair_of_servers(new_dir: DataDir) -> None:
    users = [new_dir.user() for _ in range(3)]
    urls = [user.urls() for user in users]
    assert len(set(urls)) == 1
    assert len(new_dir.valkey_pids) == 1
    with connect(urls[0]) as connection:
        assert connection.execute("SELECT 15").fetchone() == (15,)


def test_servers_stay_until_the_last_user_leaves_whoever_came_first(used_dir: DataDir) -> None:
    first, second = used_dir.user(), None
    first.urls()
    second = used_dir.user()
    urls = second.urls()
    first.leave()
    with connect(urls) as connection:
        assert connection.execute("SELECT netuid FROM kept").fetchone() == (15,)
    second.leave()
    assert used_dir.is_quiet


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_the_only_user_ends(used_dir: DataDir, number: signal.Signals) -> None:
    user = used_dir.user()
    user.urls()
    assert len(used_dir.server_pids) > 2
    user.process.send_signal(number)
    user.process.wait()
    until(lambda: used_dir.is_quiet)
    assert not (used_dir.folder.postgres / "postmaster.pid").exists()  # a clean shutdown removes it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_supervisor_stops_the_servers(used_dir: DataDir, number: signal.Signals) -> None:
    with embedded.start(used_dir.path):
        psutil.Process(used_dir.supervisor_pid).send_signal(number)
        until(lambda: used_dir.is_quiet)


def test_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / "embedded").symlink_to("/proc/1" if tmp_path.stat().st_uid else "/proc/self/fdinfo")
    with pytest.raises(SluiceError) as refusal, embedded.start(tmp_path):
        pass
    assert refusal.value.code == ErrorCode.BAD_INPUT
