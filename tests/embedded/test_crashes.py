"""What a crash leaves behind, made with real processes and kill -9."""

import os
import signal
import subprocess
import time

import psycopg
import pytest
import redis

from service import embedded
from service.errors import ErrorCode, SluiceError
from tests.embedded.conftest import DataDir, connect, until


def rows(urls: embedded.Services) -> list[tuple[int]]:
    with connect(urls) as connection:
        return connection.execute("SELECT netuid FROM kept ORDER BY netuid").fetchall()


def answers(urls: embedded.Services) -> bool:
    try:
        return bool(rows(urls)) and redis.Redis.from_url(urls.redis_url).ping()
    except (psycopg.OperationalError, redis.ConnectionError):
        return False


def test_a_killed_postmaster_comes_back_with_every_committed_row(used_dir: DataDir) -> None:
    with embedded.start(used_dir.path) as urls:
        with connect(urls) as busy:
            busy.execute("INSERT INTO kept VALUES (16)")
            killed = used_dir.postmaster_pid
            os.kill(killed, signal.SIGKILL)
        until(lambda: used_dir.postmaster_pid != killed and answers(urls))
        assert rows(urls) == [(15,), (16,)]


def test_a_killed_valkey_comes_back(used_dir: DataDir) -> None:
    with embedded.start(used_dir.path) as urls:
        (killed,) = used_dir.valkey_pids
        os.kill(killed, signal.SIGKILL)
        until(lambda: used_dir.valkey_pids not in ([], [killed]) and answers(urls))


def test_servers_die_with_a_killed_supervisor(used_dir: DataDir) -> None:
    with embedded.start(used_dir.path):
        os.kill(used_dir.supervisor_pid, signal.SIGKILL)
        until(lambda: not used_dir.server_pids)
        with embedded.start(used_dir.path) as again:
            assert rows(again) == [(15,)]


def test_everything_killed_then_started_at_once(used_dir: DataDir) -> None:
    user = used_dir.user()
    with connect(user.urls()) as busy:
        busy.execute("INSERT INTO kept VALUES (16)")
        leader = used_dir.postmaster_pid
        for pid in (user.process.pid, used_dir.supervisor_pid, leader, *used_dir.valkey_pids):
            os.kill(pid, signal.SIGKILL)
    with embedded.start(used_dir.path) as urls:
        assert rows(urls) == [(15,), (16,)]
        assert leader not in used_dir.postgres_pids


def test_servers_that_outlived_their_supervisor_are_ended_first(used_dir: DataDir) -> None:
    with embedded.start(used_dir.path):
        survivors = [used_dir.postmaster_pid, *used_dir.valkey_pids]
        for pid in survivors:
            os.kill(pid, signal.SIGSTOP)  # stopped, they cannot follow the signal that the supervisor's death sends
        os.kill(used_dir.supervisor_pid, signal.SIGKILL)
        time.sleep(0.2)
        assert set(survivors) <= set(used_dir.server_pids)
        with embedded.start(used_dir.path) as urls:
            assert rows(urls) == [(15,)]
            assert not set(survivors) & set(used_dir.server_pids)


def test_a_stale_pid_file_whose_pid_is_in_use_again_stops_nobody(used_dir: DataDir) -> None:
    owner = (used_dir.folder.postgres).stat()
    # A process of the servers' own account: to Postgres it would pass for a running postmaster.
    with subprocess.Popen(["sleep", "60"], user=owner.st_uid if os.geteuid() == 0 else None) as bystander:
        pid_file = used_dir.folder.postgres / "postmaster.pid"
        pid_file.write_text(f"{bystander.pid}\n/nowhere\n1700000000\n5432\n/tmp\n\n 16039943         9\nready\n")
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        with embedded.start(used_dir.path) as urls:
            assert rows(urls) == [(15,)]
        assert bystander.poll() is None
        bystander.kill()


def test_a_half_made_folder_is_made_anew(new_dir: DataDir) -> None:
    draft = new_dir.folder.postgres.with_name("postgres.new")
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with embedded.start(new_dir.path) as urls, connect(urls) as connection:
        assert connection.execute("SELECT 15").fetchone() == (15,)


def test_a_folder_of_another_postgres_version_is_refused_by_name(used_dir: DataDir) -> None:
    (used_dir.folder.postgres / "PG_VERSION").write_text("15\n")
    with pytest.raises(SluiceError, match="Postgres 15") as refusal, embedded.start(used_dir.path):
        pass
    assert refusal.value.code == ErrorCode.PREREQUISITE_MISSING
    assert used_dir.is_quiet


def test_a_broken_valkey_file_is_reported_and_postgres_stopped(used_dir: DataDir) -> None:
    manifest = next((used_dir.folder.valkey / "appendonlydir").glob("*.manifest"))
    manifest.write_text("not a manifest\n")
    with pytest.raises(SluiceError, match="Valkey does not start") as refusal, embedded.start(used_dir.path):
        pass
    assert refusal.value.code == ErrorCode.SERVICE_UNAVAILABLE
    assert used_dir.is_quiet
