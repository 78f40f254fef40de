"""Networks, and how their outputs are read."""

from r2et.models.gcn import SiameseGCN
from r2et.models.hinge import HingeMLP
from r2et.models.mlp import MLP
from r2et.models.output import predict, undisturbed
from r2et.models.resnet import ResNet18
from r2et.models.siamese import Siamese, SiameseCNN, SiameseMLP
from r2et.models.smooth import smooth
from r2et.models.storage import load_extra, load_model, save_model
from r2et.models.table import TableMLP

__all__ = [
    "MLP",
    "HingeMLP",
    "ResNet18",
    "Siamese",
    "SiameseCNN",
    "SiameseGCN",
    "SiameseMLP",
    "TableMLP",
    "load_extra",
    "load_model",
    "predict",
    "save_model",
    "smooth",
    "undisturbed",
]
