"""Audits in MLflow, on a real tracking server on the loopback interface."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest

from audits import skipped, tabular
from r2et.audit import Audit, mlflow_log
from r2et.errors import InputError


def test_what_is_logged():
    audit = Audit(tabular())
    figures = dict(mlflow_log.figures(audit))
    assert figures["precision_strong"] == audit.summary()["precision_strong"]
    assert all(isinstance(value, float) for value in figures.values())
    assert dict(mlflow_log.settings(audit))["k"] == str(audit.summary()["k"])
    assert dict(mlflow_log.digests(audit))["data_sha256"] == "ab" * 32
    assert set(dict(mlflow_log.figures(Audit(skipped())))) == {"rows", "k", "radius"}
    assert dict(mlflow_log.digests(Audit(skipped()))) == {"model": "nothing"}


def test_without_mlflow_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    expected = (
        r"^log_mlflow: mlflow must be installed \(pip install 'r2et\[mlflow\]'\), got no such"
    )
    with pytest.raises(InputError, match=expected):
        Audit(tabular()).log_mlflow()


ENTITIES = SimpleNamespace(**dict.fromkeys(("Metric", "Param", "RunTag"), lambda *parts: parts))


class Store:
    """What MLflow shows of itself, with no server behind it."""

    def __init__(self, **params):
        self.params, self.logged = params, []

    def active_run(self):
        return None

    def start_run(self, run_name):
        raise OSError(f"no server\nfor {run_name}")

    def MlflowClient(self):  # noqa: N802, as theirs is called
        return self

    def get_run(self, run_id):
        if run_id == "unknown":
            raise LookupError("Run 'unknown' not found")
        return SimpleNamespace(data=SimpleNamespace(params=self.params))

    def log_batch(self, *_, **__):
        self.logged.append("batch")
        raise OSError("connection lost")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, r"MLflow must be able to log the audit, got an error \(OSError: no server\)\.$"),
        ({"run_id": "unknown"}, r"run_id must be that of a run MLflow has, got an error \(Lookup"),
        ({"run_id": 3}, r"run_id must be the id of a run, got 3\.$"),
        ({"run_id": ""}, r"run_id must be the id of a run, got \.$"),
        ({"run_id": "a", "prefix": "$%"}, "prefix must be letters, digits, '_', .* got "),
        ({"run_id": "a", "prefix": 3}, "prefix must be letters, digits, '_', .* got 3"),
        ({"run_id": "a", "prefix": "b."}, r"got an error \(OSError: connection lost\)\.$"),
    ],
)
def test_what_mlflow_refuses_is_one_sentence(monkeypatch, settings, sentence):
    monkeypatch.setitem(sys.modules, "mlflow", Store())
    monkeypatch.setitem(sys.modules, "mlflow.entities", ENTITIES)
    with pytest.raises(InputError, match=sentence) as caught:
        Audit(tabular()).log_mlflow(**settings)
    assert str(caught.value).startswith("log_mlflow: ")
    assert "\n" not in str(caught.value)


def test_a_second_audit_of_other_settings_needs_another_prefix(monkeypatch):
    """Nothing of it is logged: MLflow would keep the figures and refuse the settings."""
    store = Store(**{"r2et.k": "99"})
    monkeypatch.setitem(sys.modules, "mlflow", store)
    monkeypatch.setitem(sys.modules, "mlflow.entities", ENTITIES)
    expected = r"prefix must be another than that of .*, got r2et\. \(r2et\.k \d+ beside 99\)\.$"
    with pytest.raises(InputError, match=expected):
        Audit(tabular()).log_mlflow(run_id="a")
    assert store.logged == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_the_extra_alone_logs_to_a_file(monkeypatch, tmp_path):
    """The client and SQLAlchemy, without a server."""
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    pytest.importorskip("sqlalchemy", reason="mlflow is not installed with sqlalchemy")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri("sqlite:///runs.db")
    audit = Audit(tabular())
    with mlflow.start_run() as run:
        assert audit.log_mlflow() == audit.log_mlflow() == run.info.run_id
        other = Audit({**tabular(), "settings": {**tabular()["settings"], "k": 1}})
        with pytest.raises(InputError, match=r"prefix must be another .* got r2et\. \(r2et\.k 1 "):
            other.log_mlflow()
        assert other.log_mlflow(prefix="other.") == run.info.run_id
        with pytest.raises(InputError, match="run_id must be that of a run MLflow has, got an err"):
            audit.log_mlflow(run_id="unknown")
        with pytest.raises(InputError, match="MLflow must be able to log the audit, got an error"):
            audit.log_mlflow(prefix="../")
    assert mlflow.MlflowClient().get_run(run.info.run_id).data.params["other.k"] == "1"


@pytest.fixture
def server(tmp_path):
    """The address of a tracking server that keeps all in a folder of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--backend-store-uri", f"sqlite:///{tmp_path / 'runs.db'}", "--workers", "1",
        "--artifacts-destination", str(tmp_path / "artifacts"),
    ]  # fmt: skip
    log = (tmp_path / "server.log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(address, process)
        yield address
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)
        log.close()


def _wait(address, process, seconds=240):
    until = time.time() + seconds
    while time.time() < until:
        assert process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
                assert answer.status == 200
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(address)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_a_real_tracking_server(request, monkeypatch, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    pytest.importorskip("mlflow.server.fastapi_app", reason="mlflow is not installed with a server")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    mlflow.set_tracking_uri(request.getfixturevalue("server"))
    mlflow.set_experiment("audits")
    audit = Audit(tabular())
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 0.5)
        assert audit.log_mlflow() == run.info.run_id
    client = mlflow.MlflowClient()
    data = client.get_run(run.info.run_id).data
    assert data.metrics["loss"] == 0.5
    assert data.metrics["r2et.precision_strong"] == audit.summary()["precision_strong"]
    assert data.params["r2et.k"] == str(audit.summary()["k"])
    assert data.tags["r2et.weights_sha256"] == "cd" * 32
    names = {file.path for file in client.list_artifacts(run.info.run_id, "r2et")}
    assert names == {"r2et/audit.html", "r2et/audit.json"}
    path = client.download_artifacts(run.info.run_id, "r2et/audit.json", str(tmp_path))
    with open(path) as file:
        assert json.load(file) == tabular()
    # Without a run one is begun and ended; of a run that has ended, by its id.
    other = audit.log_mlflow(prefix="")
    assert mlflow.active_run() is None
    assert client.get_run(other).info.status == "FINISHED"
    assert "precision_strong" in client.get_run(other).data.metrics
    assert audit.log_mlflow(prefix="later.", run_id=other) == other
    assert client.get_run(other).data.params["later.k"] == str(audit.summary()["k"])
