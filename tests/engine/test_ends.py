"""Ctrl-C and kill -9 of real processes, and a Ray cluster of two nodes: nobody is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import engine_work
import r2et
from ctrl_c import hearing_ctrl_c
from r2et.engine import engine
from r2et.errors import R2ETError

SCRIPT = Path(engine_work.__file__)
SOURCE = Path(r2et.__file__).parents[1]


def start(kind: str, folder: Path) -> tuple[subprocess.Popen, list[int]]:
    """A driver whose two workers sleep over an item each, and the numbers of their processes."""
    path = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, str(SCRIPT), kind, str(folder)]
    pipe = subprocess.PIPE
    command = hearing_ctrl_c(command)
    driver = subprocess.Popen(command, env=path, stderr=pipe, start_new_session=True)
    deadline = time.monotonic() + 200
    while len(list(folder.iterdir())) < 2:
        if driver.poll() is not None or time.monotonic() > deadline:
            driver.kill()
            raise AssertionError(driver.communicate()[1].decode())
        time.sleep(0.05)
    return driver, [int(p.name) for p in folder.iterdir()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def session(driver: subprocess.Popen) -> list[int]:
    """All living processes of the driver's session, however they are called."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == driver.pid and fields[0] != "Z":
            found.append(int(path.name))
    return found


def gone(driver: subprocess.Popen, workers: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(alive(pid) for pid in workers) and not session(driver):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("kind", "end"),
    # After kill -9 of its driver Ray ends its workers too, but takes a minute over its own agents.
    [
        ("processes", signal.SIGINT),
        ("processes", signal.SIGKILL),
        pytest.param("ray", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_the_end_of_the_driver_is_the_end_of_its_workers(tmp_path, kind, end):
    if kind == "ray":
        pytest.importorskip("ray", exc_type=ImportError)
    driver, workers = start(kind, tmp_path)
    try:
        began = time.monotonic()
        if end == signal.SIGINT and kind == "processes":
            os.killpg(driver.pid, end)  # as a terminal does: to the workers too
        else:
            driver.send_signal(end)
        _, err = driver.communicate(timeout=60)
        took = time.monotonic() - began
    finally:
        driver.kill()
    assert driver.returncode != 0
    assert gone(driver, workers, 20), err.decode()
    if kind == "processes":
        assert took < 20
        assert err.count(b"Traceback") == (1 if end == signal.SIGINT else 0), err.decode()


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from r2et.engine import engine\nlist(engine('processes', 1)(abs, range(3)))\n"
    )
    path = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, str(script)], env=path, capture_output=True, timeout=200, check=False
    )
    assert done.returncode == 1
    last = done.stderr.decode().strip().splitlines()[-1]
    assert "workers must be able to start (a script needs `if __name__ == '__main__':`)" in last


@pytest.fixture
def two_nodes():
    pytest.importorskip("ray", exc_type=ImportError)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster, second
    cluster.shutdown()


@pytest.mark.slow
def test_two_nodes_and_one_of_them_dies(two_nodes):
    cluster, second = two_nodes
    with engine("ray", address=cluster.address) as run:
        assert sorted(run(engine_work.square, range(6))) == [(i, i * i) for i in range(6)]
        assert run.workers == 2
        found = {}
        for index, result in run(engine_work.square, range(30)):
            if not found:
                cluster.remove_node(second)
            found[index] = result
        assert found == {i: i * i for i in range(30)}
    import ray

    assert not ray.is_initialized()
    with engine("ray", address=cluster.address) as run:  # still there: only the engine left
        assert dict(run(engine_work.square, [3])) == {0: 9}


@pytest.mark.slow
def test_an_address_where_nobody_is():
    pytest.importorskip("ray", exc_type=ImportError)
    with pytest.raises(R2ETError, match="engine: address must be that of a Ray cluster"):
        list(engine("ray", address="nowhere")(engine_work.square, [1]))
