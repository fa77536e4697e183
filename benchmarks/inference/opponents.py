"""ONNX Runtime and OpenVINO on the forecaster's weights, each set up for speed as its manual says.

Both get graphs of fixed shapes, one thread, no spinning while they wait, and every optimisation
that they have; denormals count as zero. ONNX Runtime's int8 quantises the weights of all matrix
products beforehand, by output channel, and what they are multiplied with as it comes.

Axis legend: B windows, K KPIs, M future samples, Q quantiles.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path as File
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import Unavailable
from benchmarks.inference.graph import export_onnx, named_inputs
from benchmarks.inference.paths import Path, Precision
from model.forecaster import Forecaster
from model.tokens import Tokens

PACKAGES = ("onnx", "onnxscript", "onnxruntime", "openvino")
_ERRORS_ONLY = 3
_OPENVINO_TYPES: Mapping[Precision, str] = {"fp32": "f32", "bf16": "bf16"}


def check_installed() -> None:
    """See whether the opponents are there.

    Raises:
        Unavailable: They come with an extra that is not installed.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"{', '.join(missing)} not installed; "
            "`pip install -c constraints.txt -e '.[benchmark]'` does"
        )


def opponents(forecaster: Forecaster, tokens: Tokens) -> Sequence[Path]:
    """Every opponent, made for tokens of these shapes.

    Args:
        forecaster: Whose weights they get, in inference mode.
        tokens: An example.

    Raises:
        Unavailable: They are not installed.
    """
    check_installed()
    with tempfile.TemporaryDirectory() as folder:
        plain = File(folder) / "plain.onnx"
        export_onnx(forecaster, tokens, plain)
        return (
            Path("ONNX Runtime fp32", _onnx_runtime(plain), "fp32"),
            Path("ONNX Runtime int8", _onnx_runtime(_quantised(plain)), "int8"),
            Path("OpenVINO fp32", _openvino(plain, "fp32"), "fp32"),
            Path("OpenVINO bf16", _openvino(plain, "bf16"), "bf16"),
        )


def _onnx_runtime(graph: File) -> Callable[[Tokens], Tensor]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        graph.read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    taken = [node.name for node in session.get_inputs()]

    def answer(tokens: Tokens) -> Tensor:
        inputs = named_inputs(tokens)
        (quantiles,) = session.run(None, {name: inputs[name] for name in taken})
        return torch.from_numpy(quantiles)

    return answer


def _quantised(graph: File) -> File:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared, quantised = graph.with_stem("prepared"), graph.with_stem("int8")
    quant_pre_process(graph, prepared, skip_symbolic_shape=True)  # every shape is known
    quantize_dynamic(
        prepared,
        quantised,
        op_types_to_quantize=["MatMul", "Gemm"],
        per_channel=True,
        weight_type=QuantType.QInt8,
    )
    return quantised


def _openvino(graph: File, precision: Precision) -> Callable[[Tokens], Tensor]:
    import openvino

    settings: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _OPENVINO_TYPES[precision],
        "CPU_DENORMALS_OPTIMIZATION": True,
    }
    compiled = openvino.Core().compile_model(graph, "CPU", settings)
    request = compiled.create_infer_request()
    taken = [port.any_name for port in compiled.inputs]

    def answer(tokens: Tokens) -> Tensor:
        inputs = named_inputs(tokens)
        found = request.infer(
            {name: inputs[name] for name in taken}, share_inputs=True, share_outputs=True
        )
        return torch.from_numpy(found[0])

    return answer
