"""A model's forward and backward pass as torch runs it: tracing, building, the graph itself."""

from r2et.certify.graph.building import build, graph_of
from r2et.certify.graph.graph import INPUT, OUTPUT_GRADIENT, Graph, Node
from r2et.certify.graph.tracing import Trace, trace

__all__ = ["INPUT", "OUTPUT_GRADIENT", "Graph", "Node", "Trace", "build", "graph_of", "trace"]
