"""Python expressions that compute with PyTorch, in contrast to those that allocate, view or move memory."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dice.kernels.checks.extensions import is_extension
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

COMPUTE = words("""
    matmul mm bmm addmm baddbmm addbmm addmv mv dot vdot inner outer einsum tensordot bilinear linear chain_matmul
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d unfold fold
    relu relu_ relu6 leaky_relu leaky_relu_ gelu silu silu_ mish elu elu_ selu celu hardtanh hardswish hardsigmoid
    sigmoid sigmoid_ logsigmoid tanh tanh_ softplus softsign tanhshrink softshrink hardshrink prelu rrelu glu threshold
    softmax log_softmax softmin gumbel_softmax exp exp_ log log2 log10 log1p sqrt rsqrt sin cos tan erf erfc pow square
    abs neg sign clamp clamp_ clamp_min clamp_max clip add add_ sub sub_ mul mul_ div div_ addcmul addcdiv lerp where
    maximum minimum
    sum mean max min amax amin prod var std norm logsumexp cumsum cumprod cummax cummin argmax argmin topk sort median
    layer_norm batch_norm group_norm instance_norm local_response_norm rms_norm normalize
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d lp_pool2d
    scaled_dot_product_attention multi_head_attention_forward interpolate upsample grid_sample pixel_shuffle
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits cosine_embedding_loss triplet_margin_loss hinge_embedding_loss cosine_similarity
    pairwise_distance cdist embedding
    """)
_OWNERS = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.Tensor", "torch._C._nn")
"""Modules and classes of which some functions compute."""
_COMPUTING = ("torch.ops.aten", "torch.sparse", "torch.fft")
"""Modules of which all do."""
_AMBIGUOUS = words("add sub mul div where max min sum sort index pow abs sign square norm")
_NOT_LAYERS = words(
    "Module Parameter ParameterList ParameterDict ModuleList ModuleDict Sequential Identity Flatten Unflatten"
)


def torch_computations(source: PythonSource, nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Expressions among `nodes` that compute with PyTorch: functions, methods, layers called, and `@`."""
    for node in nodes:
        is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        if is_product or (isinstance(node, ast.Call) and _computes(source, node)):
            yield node


def names_computation(source: PythonSource, node: ast.AST) -> bool:
    """Whether an expression is a function of PyTorch's that computes, called or not."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    owner, _, last = (source.dotted(node) or "").rpartition(".")
    return owner in _COMPUTING or (owner in _OWNERS and last in COMPUTE)


def _computes(source: PythonSource, call: ast.Call) -> bool:
    name = source.dotted(call.func)
    owner, _, last = (name or "").rpartition(".")
    if owner in _OWNERS:
        return last in COMPUTE
    if owner in _COMPUTING:
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    if _is_layer(source, call.func):
        return True
    # A method of something unknown: the names that other types have as well prove nothing.
    known = (name is not None and source.is_imported(name)) or is_extension(source, call.func.value)
    return not known and call.func.attr in COMPUTE - _AMBIGUOUS and not source.definitions(call.func.attr)


def _is_layer(source: PythonSource, function: ast.Attribute) -> bool:
    made = (node for value in source.values(function.attr) for node in ast.walk(value) if isinstance(node, ast.Call))
    for call in made:
        owner, _, last = (source.dotted(call.func) or "").rpartition(".")
        if owner == "torch.nn" and last[:1].isupper() and last not in _NOT_LAYERS and not last.startswith("Dropout"):
            return True
    return False
