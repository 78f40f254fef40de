"""Stored networks that are broken, or made by somebody with bad intent: one sentence each."""

import hashlib
import json

import pytest
import safetensors.torch
import torch

from r2et.errors import InputError
from r2et.models import ResNet18, load_model, save_model


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


def rewrite(folder, **changes):
    """Change the description, None to remove an entry."""
    path = folder / "model.json"
    description = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in description.items() if v != "(removed)"}))


def reweigh(folder, change):
    """Change the weights and make the description agree, as somebody with bad intent would."""
    path = weights_of(folder)
    weights = safetensors.torch.load_file(path)
    blob = safetensors.torch.save(change(weights))
    replace_weights(folder, blob)


def replace_weights(folder, blob):
    weights_of(folder).unlink()
    digest = hashlib.sha256(blob).hexdigest()
    (folder / f"weights-{digest[:16]}.safetensors").write_bytes(blob)
    rewrite(folder, weights=digest)


def refusal(folder):
    with pytest.raises(InputError) as caught:
        load_model(folder)
    text = str(caught.value)
    assert text.startswith("load_model: ")
    assert "\n" not in text
    return text.replace(str(folder), "FOLDER")


def test_no_model_there(tmp_path):
    for missing in (tmp_path, tmp_path / "none"):
        message = "load_model: folder must be one with model.json, got none in FOLDER."
        assert refusal(missing) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be JSON, got the error: Expecting value: line 1 column 1 (char 0)"),
        (b'{"format": 1, "cla', "must be JSON, got the error: Unterminated string"),
        (b"\xff\xfe\x00\x81", "must be JSON, got the error: "),
        (b"[" * 100_000, "must be JSON, got the error: "),
        (b"[1]", "must be a JSON object, got list."),
    ],
)
def test_a_description_that_is_none(folder, content, message):
    (folder / "model.json").write_bytes(content)
    assert refusal(folder).startswith(f"load_model: FOLDER/model.json {message}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, ": format must be 1 (update r2et), got 2."),
        ({"format": "(removed)"}, ": format must be a number, got None."),
        ({"format": "1"}, ": format must be a number, got 1."),
        ({"format": True}, ": format must be a number, got True."),
        (
            {"class": "os.system"},
            ": class must be one of HingeMLP, MLP, ResNet18, SiameseCNN, SiameseGCN, "
            "SiameseMLP, TableMLP, got os.syste",
        ),
        (
            {"class": ["MLP"]},
            ": class must be one of HingeMLP, MLP, ResNet18, SiameseCNN, SiameseGCN, "
            "SiameseMLP, TableMLP, got ['MLP'].",
        ),
        ({"settings": [3]}, ": settings must be an object, got [3]."),
        ({"extra": "(removed)"}, ": extra must be an object, got None."),
        ({"rho": "(removed)"}, ": rho must be a number or null, got nothing."),
        ({"weights": "../../x"}, ": weights must be a SHA-256 in hexadecimal, got ../../x."),
        ({"weights": None}, ": weights must be a SHA-256 in hexadecimal, got None."),
        (
            {"settings": {"features": "3"}},
            " must be a description that MLP can be built from, got the error: MLP: features must "
            "be a whole number, at least 1, got 3.",
        ),
        (
            {"settings": {"features": 3, "shell": "ls"}},
            " must be a description that MLP can be built from, got the error: ",
        ),
        ({"settings": {}}, " must be a description that MLP can be built from, got the error: "),
        (
            {"settings": {"features": 10**30}},
            " must be a description that MLP can be built from, got the error: ",
        ),
        (
            {"rho": -1.0},
            " must be a description that MLP can be built from, got the error: smooth: rho must "
            "be a positive number, 1e-30 to 1e30, got -1.0.",
        ),
    ],
)
def test_a_description_with_a_wrong_entry(folder, changes, message):
    rewrite(folder, **changes)
    assert refusal(folder).startswith(f"load_model: FOLDER/model.json{message}")


def test_missing_weights(folder):
    path = weights_of(folder)
    path.unlink()
    assert refusal(folder) == (
        f"load_model: folder must be one with {path.name}, got none in FOLDER."
    )


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped"])
def test_damaged_weights(folder, damage):
    path = weights_of(folder)
    blob = bytearray(path.read_bytes())
    if damage == "flipped":
        blob[-1] ^= 1
    path.write_bytes({"truncated": blob[:-3], "empty": b"", "flipped": blob}[damage])
    size = {"truncated": len(blob) - 3, "empty": 0, "flipped": len(blob)}[damage]
    assert refusal(folder) == (
        f"load_model: FOLDER/{path.name} must be the file that model.json was written for (by "
        f"SHA-256), got {size} bytes that differ from it."
    )


def test_weights_that_are_no_safetensors(folder):
    for blob in (b"", b"\x80\x04.", weights_of(folder).read_bytes()[:-3]):
        replace_weights(folder, blob)
        assert f"{weights_of(folder).name} must be safetensors, got " in refusal(folder)


def without(name):
    return lambda weights: {k: v for k, v in weights.items() if k != name}


def with_(name, tensor):
    return lambda weights: {**weights, name: tensor}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("layers.2.bias"), " must be complete, got no weights for layers.2.bias."),
        (
            with_("layers.9.bias", torch.zeros(1)),
            " must be without weights of other networks, got layers.9.bias.",
        ),
        (
            with_("layers.0.weight", torch.zeros(3, 4)),
            ": layers.0.weight must be of shape (4, 3), got float32 tensor of shape (3, 4) on cpu.",
        ),
        (
            with_("layers.0.bias", torch.zeros(4, dtype=torch.long)),
            ": layers.0.bias must be floating-point, got int64 tensor of shape (4,) on cpu.",
        ),
        (
            with_("layers.0.bias", torch.tensor([0.0, torch.inf, 0.0, 0.0])),
            ": layers.0.bias must be finite, got NaN or infinity.",
        ),
    ],
)
def test_weights_of_another_network(folder, change, message):
    reweigh(folder, change)
    assert refusal(folder) == f"load_model: FOLDER/{weights_of(folder).name}{message}"


def test_counters_must_be_whole_numbers(tmp_path):
    save_model(ResNet18(width=1), tmp_path)
    reweigh(tmp_path, with_("stem.1.num_batches_tracked", torch.tensor(1.5)))
    assert "stem.1.num_batches_tracked must be torch.int64, got float32" in refusal(tmp_path)
