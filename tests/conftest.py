"""One thread: the networks in these tests are tiny, and threads make them many times slower."""

import torch

torch.set_num_threads(1)
