"""Networks of ONNX compute what ONNX says that they do, or are refused in a sentence."""

import numpy as np
import pytest
import torch

from r2et.audit import audit, from_onnx
from r2et.audit.onnx_network import OnnxNetwork, OnnxNode
from r2et.audit.onnx_operators import ENDS, OPERATORS, OPSETS
from r2et.errors import InputError
from r2et.models.weights import weights_digest

pytestmark = pytest.mark.filterwarnings("ignore")  # of a package that is not ours
RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4)).astype("f4")
W, B, OUT = (RNG.normal(size=size).astype("f4") for size in ((4, 4), 4, (4, 3)))


@pytest.fixture
def onnx():
    package = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnx.reference", reason="onnx is not installed with its reference")
    return package


def built(onnx, *nodes, row=(4,), opset=OPSETS[1], elem=1, inputs=("x",), **tensors):
    """A model of one input and the output y; nodes: kind, inputs, output, attributes."""
    make, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [make(kind, read, [to], **own) for kind, read, to, own in nodes],
        "net",
        [info(name, elem, None if row is None else ["rows", *row]) for name in inputs],
        [info("y", elem, None)],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in tensors.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])


def reference(onnx, model):
    return onnx.reference.ReferenceEvaluator(model).run(None, {"x": X})[0]


def linear(onnx, values):
    """Weights in a Constant."""
    tensor = onnx.numpy_helper.from_array(values)
    return built(onnx, ("Constant", [], "w", {"value": tensor}), ("MatMul", ["x", "w"], "y", {}))


def network(kind="Relu", constant=1.0, **attributes):
    nodes = [OnnxNode("Mul", ("x", "c"), "h", {}), OnnxNode(kind, ("h",), "y", attributes)]
    return OnnxNetwork(nodes, {"c": torch.tensor([constant])}, "x", "y").eval()


def test_a_digest_is_of_the_graph_and_its_constants():
    assert weights_digest(network()) == weights_digest(network())
    others = [network("Tanh"), network(constant=2.0)]
    others += [network("Elu", alpha=alpha) for alpha in (0.5, 1.0)]
    assert len({weights_digest(other) for other in (network(), *others)}) == 5
    network().load_state_dict(network(constant=2.0).state_dict())
    with pytest.raises(InputError, match="weights must be of the same graph, got those of another"):
        network().load_state_dict(network("Tanh").state_dict())


@pytest.mark.usefixtures("short_attacks")
def test_weights_in_constants_are_buffers(onnx):
    one, other = from_onnx(linear(onnx, OUT)), from_onnx(linear(onnx, 2 * OUT))
    assert weights_digest(one) != weights_digest(other)
    assert torch.equal(one.constant_0, torch.from_numpy(OUT))
    double = one.double()(torch.from_numpy(X).double())
    np.testing.assert_allclose(double, X.astype("f8") @ OUT, rtol=1e-12)
    found = audit(other, torch.from_numpy(X), k=2, budget="fast")
    assert found.result["inputs"]["weights"]["sha256"] == weights_digest(other)
    assert found.summary()["certified_share"] > 0.5


GEMM = {"alpha": 1.7, "beta": 0.3, "transB": 1}
COMPUTED = [
    ("Gemm", ["x", "w"], {}),
    ("Gemm", ["x", "w", ""], {}),
    ("Gemm", ["x", "w", "b"], {"transA": 0}),
    ("Gemm", ["x", "w", "b"], GEMM),
    ("Gemm", ["x", "w", "s"], GEMM),
    ("MatMul", ["x", "w"], {}),
    *((kind, ["x", "b"], {}) for kind in ("Add", "Sub", "Mul", "Div")),
    *((kind, ["b", "x"], {}) for kind in ("Add", "Sub", "Mul", "Div")),
    ("Elu", ["x"], {}),
    ("Elu", ["x"], {"alpha": 0.3}),
    ("LeakyRelu", ["x"], {}),
    ("LeakyRelu", ["x"], {"alpha": 0.3}),
    ("Gelu", ["x"], {}),
    ("Gelu", ["x"], {"approximate": "tanh"}),
    ("Flatten", ["x"], {}),
    ("Flatten", ["x"], {"axis": 1}),
    *((kind, ["x"], {}) for kind in ("Identity", "Neg", "Relu", "Sigmoid", "Softplus", "Tanh")),
]


def test_every_operator_is_compared():
    assert {kind for kind, _, _ in COMPUTED} == set(OPERATORS)
    assert {*ENDS} == {"Softmax", "LogSoftmax", "Sigmoid"}


@pytest.mark.parametrize(("kind", "read", "attributes"), COMPUTED)
def test_what_onnx_computes(onnx, kind, read, attributes):
    """With the optional inputs, the defaults and the oldest and newest set of operators."""
    step = (kind, read, "h", attributes)
    for opset in sorted({max(OPSETS[0], OPERATORS[kind].since), OPSETS[1]}):
        model = built(
            onnx, step, ("MatMul", ["h", "out"], "y", {}), opset=opset, w=W, b=B, s=B[0], out=OUT
        )
        expected = reference(onnx, model)
        got = from_onnx(model)(torch.from_numpy(X)).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [{"value_float": 0.5}, {"value_floats": [1.0, 2.0, 3.0, 4.0]}])
def test_floats_of_a_constant(onnx, value):
    nodes = ("Constant", [], "c", value), ("Mul", ["x", "c"], "y", {})
    model = built(onnx, *nodes)
    np.testing.assert_allclose(from_onnx(model)(torch.from_numpy(X)), reference(onnx, model))


@pytest.mark.parametrize(("kind", "axis"), [("Softmax", {}), ("LogSoftmax", {"axis": 1})])
@pytest.mark.parametrize("opset", OPSETS)
def test_an_end_over_the_classes_is_left_out(onnx, kind, axis, opset):
    logits = ("MatMul", ["x", "out"], "h", {})
    model = built(onnx, logits, (kind, ["h"], "y", axis), out=OUT, opset=opset)
    network = from_onnx(model)
    assert network.left_out in ("softmax", "log-softmax")
    np.testing.assert_allclose(network(torch.from_numpy(X)), X @ OUT, rtol=1e-5, atol=1e-6)
    shares = torch.softmax(network(torch.from_numpy(X)), 1).numpy()
    expected = reference(onnx, model)
    expected = expected if kind == "Softmax" else np.exp(expected)
    np.testing.assert_allclose(shares, expected, rtol=1e-4, atol=1e-6)


MAT = ("MatMul", ["x", "out"], "h", {})
REFUSED = [
    ([MAT, ("Softmax", ["h"], "y", {"axis": 0})], {}, r"axis of Softmax must be 1 or -1, got 0\.$"),
    ([MAT, ("Sigmoid", ["h"], "y", {})], {}, "Sigmoid at its end must be of one logit for each"),
    ([("MatMul", ["x", "b"], "h", {}), ("Softmax", ["h"], "y", {})], {}, "two logits or more"),
    ([("Gemm", ["x", "", "b"], "y", {})], {}, "inputs of Gemm must be 2 to 3, got x, one left out"),
    ([("Relu", [], "y", {})], {}, r"inputs of Relu must be 1, got none\.$"),
    ([("Add", ["x", "b", "b"], "y", {})], {}, r"inputs of Add must be 2, got x, b, b\.$"),
    ([("Add", ["x", "c"], "y", {})], {}, r"read what was made before them, got Add of \['c'\]\.$"),
    ([("Relu", ["x"], "b", {}), ("Neg", ["b"], "y", {})], {}, "each value once, got b twice"),
    ([("Flatten", ["x"], "y", {"axis": 0})], {}, r"axis of Flatten must be 1, got 0\.$"),
    ([("Gelu", ["x"], "y", {})], {"opset": 17}, "Gelu must be of operator set 20 or later, got 17"),
    ([("Gelu", ["x"], "y", {"approximate": "x"})], {}, "approximate of Gelu must be none or tanh"),
    ([("Relu", ["x"], "y", {"alpha": 2.0})], {}, "attribute of Relu must be of none, once, got al"),
    ([("Elu", ["x"], "y", {"alpha": 2})], {}, "alpha of Elu must be of type float, got 2"),
    ([("Elu", ["x"], "y", {"alpha": b"\xff"})], {}, "alpha of Elu must be of type float, got "),
    ([("Relu", ["x"], "y", {})], {"opset": 6}, "operator set of ONNX, 7 to 28, got 6"),
    ([("Relu", ["x"], "y", {})], {"opset": 99}, "operator set of ONNX, 7 to 28, got 99"),
    ([("Relu", ["x"], "y", {})], {"elem": 7}, "input must be of FLOAT16, FLOAT, DOUBLE, got INT64"),
    ([("Mul", ["x", "n"], "y", {})], {}, "tensor n must be FLOAT, as the input is, got INT64"),
    ([("Mul", ["x", "d"], "y", {})], {}, "tensor d must be FLOAT, as the input is, got DOUBLE"),
    ([("Split", ["x"], "y", {})], {}, r"made of Add, Constant, .*, Tanh \(or give .*got Split\.$"),
    ([("Relu", ["x"], "y", {"domain": "my"})], {}, r"got Relu of my\.$"),
    ([("MatMul", ["x", "w"], "y", {})], {"row": (3,)}, "model must be one whose shapes fit, got "),
    ([("Add", ["x", "batch"], "y", {})], {"row": (1,)}, "model must be one whose shapes fit, got "),
    ([("Gemm", ["x", "x"], "y", {"transA": 1})], {}, "one that computes row by row, got outputs"),
    ([("Relu", ["x"], "y", {})], {"inputs": ("x", "z")}, "model must be of one input, got 2"),
    ([("Softmax", ["x"], "y", {})], {}, "of at least one operator before its end, got none"),
    ([("Constant", [], "c", {"value_ints": [1]}), ("Add", ["x", "c"], "y", {})], {},
     r"Constant c must be value, value_float or value_floats, got value_ints\.$"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "settings", "sentence"), REFUSED)
def test_what_is_not_computed_is_refused(onnx, nodes, settings, sentence):
    tensors = {"w": W, "b": B, "out": OUT, "n": np.array(2), "d": B.astype("f8"), "batch": X}
    with pytest.raises(InputError, match=sentence) as caught:
        from_onnx(built(onnx, *nodes, **settings, **tensors))
    assert str(caught.value).startswith("from_onnx: ")
    assert "\n" not in str(caught.value)


def test_rows_are_of_the_declared_shape(onnx):
    network = from_onnx(built(onnx, ("Mul", ["x", "b"], "y", {}), b=B))
    with pytest.raises(InputError, match=r"x must be rows of shape \(4\), got shape \(2, 1\)\.$"):
        network(torch.ones(2, 1))
    assert from_onnx(built(onnx, ("Mul", ["x", "b"], "y", {}), row=("n",), b=B)).features == (None,)


def test_tensors_that_cannot_be_read_are_refused(onnx):
    def refused(change, sentence):
        model = linear(onnx, OUT)
        change(model.graph.node[0].attribute[0].t, model.graph)
        with pytest.raises(InputError, match=sentence):
            from_onnx(model)

    def elsewhere(tensor, _):
        tensor.data_location = tensor.EXTERNAL
        tensor.ClearField("raw_data")

    def of_text(tensor, _):
        tensor.CopyFrom(onnx.helper.make_tensor("w", onnx.TensorProto.STRING, [1], [b"a"]))

    def short(tensor, _):
        tensor.raw_data = b"abc"

    def sparse(_, graph):
        graph.sparse_initializer.add()

    refused(elsewhere, r"tensor w must be in the model's own file, got one elsewhere\.$")
    refused(of_text, r"tensor w must be FLOAT, as the input is, got STRING\.$")
    refused(short, r"^from_onnx: tensor w must be one that can be read, got .*\.$")
    refused(sparse, r"one of dense tensors, each with a name of its own, got others\.$")


def test_a_function_of_the_model_does_not_take_the_place_of_an_operator(onnx):
    model = linear(onnx, OUT)
    model.functions.add(name="MatMul", domain="")
    with pytest.raises(InputError, match=r"of ONNX's own operators, got another MatMul\.$"):
        from_onnx(model)


def test_changed_files(onnx, tmp_path):
    """Bytes that are others: a network, or a sentence."""
    nodes = [
        ("Gemm", ["x", "w", "b"], "a", GEMM),
        ("Constant", [], "c", {"value_floats": [1.0, 2.0, 3.0, 4.0]}),
        ("Add", ["a", "c"], "d", {}),
        ("MatMul", ["d", "out"], "e", {}),
        ("Softmax", ["e"], "y", {"axis": -1}),
    ]
    content = built(onnx, *nodes, w=W, b=B, out=OUT).SerializeToString()
    path, refused = tmp_path / "net.onnx", []
    for _ in range(200):
        changed = bytearray(content)
        for place in RNG.integers(0, len(content), 3):
            changed[place] = RNG.integers(0, 256)
        path.write_bytes(changed)
        try:
            from_onnx(path)(torch.ones(2, 4))
        except InputError as error:
            refused.append(str(error))
    assert 50 < len(refused) < 200
    assert all(sentence.isprintable() for sentence in refused)
