"""Models as other libraries leave them: compiled, of Lightning, of ONNX."""

import numpy as np
import pytest
import torch
from torch import nn

from r2et import reasons
from r2et.audit import audit, from_onnx
from r2et.audit.loading import open_model
from r2et.audit.subject import COMPILED, Subject
from r2et.errors import InputError

X = torch.rand(8, 4, generator=torch.Generator().manual_seed(0))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 2)).eval()


class Compiled(nn.Module):
    """What torch.compile shows of itself, without its compiler."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod = model

    def forward(self, _):
        raise RuntimeError("the compiled module is not called")


Compiled.__name__ = "OptimizedModule"


@pytest.mark.usefixtures("short_attacks")
def test_of_a_compiled_module_the_original_is_audited_and_it_is_said():
    plain = audit(network(), X, k=2, budget="fast")
    found = audit(Compiled(network()), X, k=2, budget="fast")
    assert found.summary() == plain.summary()
    assert found.result["notes"] == [COMPILED, *plain.result["notes"]]
    assert found.name == "Sequential"
    assert found.result["inputs"]["weights"] == plain.result["inputs"]["weights"]
    told = reasons(Compiled(network()), X[:2], k=1, baseline=X.mean(0))
    assert COMPILED in told.notes
    assert told.sentences() == reasons(network(), X[:2], k=1, baseline=X.mean(0)).sentences()


@pytest.mark.slow
@pytest.mark.usefixtures("short_attacks")
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_what_torch_compile_gives():
    found = audit(torch.compile(network()), X, k=2, budget="fast")
    assert found.summary() == audit(network(), X, k=2, budget="fast").summary()
    assert COMPILED in found.result["notes"]


def test_a_module_without_a_forward_is_told_so():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network()

    expected = r"audit: model must be one whose forward\(x\) gives logits .* got Holder, which has"
    with pytest.raises(InputError, match=expected):
        Subject.of(Holder())


@pytest.mark.slow
@pytest.mark.usefixtures("short_attacks")
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_lightning_modules():
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()

    class Written(Module):
        def forward(self, x):
            return self.network(x)

    found = audit(Written().eval(), X, k=2, budget="fast")
    assert found.summary() == audit(network(), X, k=2, budget="fast").summary()
    assert found.name == "Written"
    with pytest.raises(InputError, match="got Module, which has no forward of its own"):
        audit(Module(), X, k=2)


def test_onnx_gets_a_sentence():
    expected = r"model must be a torch.nn.Module, .*r2et\.audit\.from_onnx.* got model\.onnx\.$"
    with pytest.raises(InputError, match=expected):
        Subject.of("model.onnx")
    with pytest.raises(InputError, match=r"a factory may return r2et\.audit\.from_onnx\(FILE\)"):
        open_model("model.onnx")


@pytest.mark.slow
@pytest.mark.usefixtures("short_attacks")
@pytest.mark.filterwarnings("ignore")  # of a package that is not ours
def test_onnx_networks_are_converted(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from onnx import TensorProto, helper, numpy_helper

    model = network()
    weights = {name.replace(".", "_"): v.numpy() for name, v in model.state_dict().items()}

    def graph(*nodes, output="out"):
        made = helper.make_graph(
            list(nodes), "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None, 2])],
            [numpy_helper.from_array(v, n) for n, v in weights.items()],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(made, opset_imports=opset, ir_version=8)

    layers = (
        helper.make_node("Gemm", ["x", "0_weight", "0_bias"], ["h"], transB=1),
        helper.make_node("Softplus", ["h"], ["s"]),
        helper.make_node("Gemm", ["s", "2_weight", "2_bias"], ["out"], transB=1),
    )
    onnx.save(graph(*layers), tmp_path / "net.onnx")
    converted = from_onnx(tmp_path / "net.onnx")
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"))
    (expected,) = session.run(None, {"x": X.numpy()})
    np.testing.assert_allclose(converted(X).numpy(), expected, rtol=1e-5, atol=1e-6)
    found = audit(converted, X, k=2, budget="fast").summary()
    plain = audit(model, X, k=2, budget="fast").summary()
    assert found["certified_share"] is not None
    assert found["radius_certified_median"] == pytest.approx(plain["radius_certified_median"])
    end = helper.make_node("Softmax", ["out"], ["p"], axis=1)
    soft = from_onnx(graph(*layers, end, output="p"))
    assert torch.equal(soft(X), converted(X))
    assert soft.left_out == "softmax"
    strange = helper.make_node("Gather", ["out", "out"], ["p"])
    with pytest.raises(InputError, match=r"from_onnx: model must be made of Add, .* got Gather\.$"):
        from_onnx(graph(*layers, strange, output="p"))
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xfenothing")
    with pytest.raises(InputError, match="from_onnx: model must be an ONNX file, got "):
        from_onnx(tmp_path / "bad.onnx")
    with pytest.raises(InputError, match=r"got ModelProto of onnx"):
        Subject.of(graph(*layers))
