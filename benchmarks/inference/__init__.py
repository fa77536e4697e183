"""How quickly the whole forecaster answers on one thread, against the runtimes of others.

The opponents are ONNX Runtime and OpenVINO on the weights of the shipped `rancast-small`. They run
the network, from embedding to quantiles; tokenisation and what follows is the same code for
everybody, and is timed. They come with an extra; where it is not installed the benchmark says so
and measures nothing.

    pip install -c constraints.txt -e '.[benchmark]'
    python -m benchmarks.inference [--quick] [--json]
"""

from benchmarks.inference.command import measure

__all__ = ["measure"]
