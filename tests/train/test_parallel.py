"""Two real processes against one: the same weights, penalty included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import r2et
from parallel_training import main
from r2et.models import load_model

pytest.importorskip("lightning_fabric")
SCRIPT = Path(__file__).parents[1] / "parallel_training.py"
PATH = os.pathsep.join([str(SCRIPT.parent), str(Path(r2et.__file__).parents[1])])
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def run(command: list[str]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATH}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r2et", "r2et-ball", "adaptive"])
def test_two_processes_give_the_weights_of_one(tmp_path, name):
    main(str(tmp_path / "one.pt"), name)
    run([*TORCHRUN, str(SCRIPT), str(tmp_path / "two.pt"), name])
    one, two = (torch.load(tmp_path / f"{n}.pt", weights_only=True) for n in ("one", "two"))
    assert (one["processes"], two["processes"]) == (1, 2)
    for key, value in one["weights"].items():
        torch.testing.assert_close(two["weights"][key], value, atol=1e-5, rtol=0)
    folder = load_model(tmp_path / "two.pt.folder").state_dict()
    assert all(torch.equal(folder[key], two["weights"][key]) for key in folder)


@pytest.mark.slow
def test_a_fabric_of_one_process_gives_the_same_bits(tmp_path):
    main(str(tmp_path / "plain.pt"), "r2et")
    run([sys.executable, str(SCRIPT), str(tmp_path / "fabric.pt"), "r2et", "fabric"])
    a, b = (torch.load(tmp_path / f"{n}.pt", weights_only=True) for n in ("plain", "fabric"))
    assert all(torch.equal(a["weights"][key], b["weights"][key]) for key in a["weights"])
