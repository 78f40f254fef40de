"""A training for tests to kill: python killed_training.py FOLDER SAVE_EVERY [RECIPE]"""

import sys

import torch

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from r2et.models import MLP
from r2et.train import fit
from training_data import small


def main(out: str | None, save_every: float, name: str = "r2et-ball") -> dict[str, torch.Tensor]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = MLP(8, (16, 16))
    found = fit(
        model, small(), name, out=out, epochs=150, save_every=save_every, progress=False, radius=0.2
    )
    return found.model.state_dict()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:4])
    print("finished", flush=True)
