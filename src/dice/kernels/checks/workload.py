"""The work of a set of ATen operators by kind, to compare a candidate with the reference.

Views, allocations, copies and fills are no work. Operators that do several kinds of work at once (softmax, norms,
losses, `addmm` with its bias, attention) count under each kind, so that a candidate gets credit for a part that it computes
itself.
"""

from __future__ import annotations

from dice.kernels.records.evidence import OpUse
from dice.kernels.source.lexer import words

_CONTRACTION = words(
    """
    mm bmm addmm baddbmm addbmm addmv mv dot vdot linear matmul einsum bilinear _trilinear convolution _convolution
    cudnn_convolution cudnn_convolution_relu cudnn_convolution_add_relu cudnn_convolution_transpose
    convolution_overrideable mkldnn_convolution mkldnn_linear mkldnn_rnn_layer _cudnn_rnn lstm gru rnn_tanh rnn_relu
    _thnn_fused_lstm_cell _thnn_fused_gru_cell _scaled_dot_product_flash_attention _scaled_mm conv_depthwise3d
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention slow_conv3d slow_conv_transpose2d
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math _conv_depthwise2d
    cdist _cdist_forward
    _scaled_dot_product_fused_attention_overrideable _transformer_encoder_layer_fwd _native_multi_head_attention
    miopen_convolution _addmm_activation _sparse_mm _sparse_addmm sparse_sampled_addmm _int_mm embedding_bag _embedding_bag
    _embedding_bag_forward_only
    """
)
_REDUCTION = words(
    """
    sum mean prod amax amin max min argmax argmin var std var_mean std_mean norm linalg_vector_norm any all
    nansum aminmax max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool2d
    avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d mkldnn_max_pool2d
    """
)
_COMPOSITE = words(
    """
    _softmax softmax _log_softmax log_softmax native_layer_norm native_batch_norm native_group_norm cudnn_batch_norm
    _native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_with_update _fused_rms_norm
    _batch_norm_no_update mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss kl_div cosine_similarity
    """
)
"""Two reductions and three elementwise steps at once, as in softmax: maximum, difference, exponent, sum, quotient."""
_ELEMENTWISE = words(
    """
    add sub rsub mul div addcmul addcdiv lerp pow square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin
    acos atan atan2 sinh cosh tanh sigmoid relu relu6 leaky_relu gelu silu mish elu celu selu hardtanh hardswish
    hardsigmoid softplus softshrink hardshrink threshold log_sigmoid_forward prelu _prelu_kernel rrelu_with_noise glu
    abs neg sign reciprocal erf erfc clamp clamp_min clamp_max where maximum minimum fmax fmin round floor ceil trunc
    frac fmod remainder sgn hypot logaddexp eq ne lt le gt ge logical_and logical_or logical_not isnan isinf
    bitwise_and bitwise_or bitwise_xor masked_fill native_dropout xlogy lgamma digamma nan_to_num heaviside
    """
)
_SEVERAL_STEPS = words("gelu silu mish elu celu selu softplus hardswish logaddexp")
"""Elementwise operators that consist of several steps: a candidate that computes a factor in a kernel and multiplies with
PyTorch has done half of the work. Only operators whose steps, all done by PyTorch, touch at least twice the elements."""
_MOVEMENT = words(
    """
    cat stack index index_select gather scatter scatter_add scatter_reduce index_add index_copy index_put flip roll take
    constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d
    upsample_trilinear3d pixel_shuffle pixel_unshuffle channel_shuffle embedding repeat tril triu grid_sampler_2d
    im2col col2im one_hot diag_embed masked_select
    """
)
_ORDERING = words("sort topk kthvalue median nanmedian mode msort argsort _unique2")
_SCAN = words("cumsum cumprod cummax cummin _cummax_helper _cummin_helper logcumsumexp")
_OTHER = words("histc bincount")
_STANDS_FOR = {"reduction": ("contraction", "scan", "ordering"), "scan": ("contraction",)}
"""Kinds of work that give what a kind gives: a product with ones sums, the last of a scan is the sum of all, the first of a
sorted row is its largest."""
_PICKING = words("nll_loss_forward nll_loss2d_forward")
"""They read one element of each row and add up. That is work where the reference does nothing else, and hardly any beside
the softmax before it."""
_WORK = _CONTRACTION | _REDUCTION | _COMPOSITE | _ELEMENTWISE | _MOVEMENT | _ORDERING | _SCAN | _PICKING | _OTHER
_WORK |= {"logsumexp"}

NO_MIXING = frozenset({"elementwise", "movement"})
"""Kinds of work on single elements; the others mix several."""
_NAMESPACES = words("aten prims prim quantized _quantized mkldnn mkldnn_prepacked sparse inductor") | {""}
"""PyTorch's own."""


def is_work(name: str) -> bool:
    """Whether an operator called `name` computes; `relu_`, `mm_out`, `mm_cpu` and `_softmax` count as their base operator."""
    names = {name, name.removeprefix("_")}
    for _ in range(2):
        names |= {each.removesuffix(ending) for each in names for ending in ("_", "_outf", "_out", "_cpu", "_cuda")}
        names |= {each.removesuffix("_backward") for each in names}
    return bool(names & _WORK) or name.startswith(("linalg_", "_fft", "fft_"))


def least_contraction(ops: dict[str, OpUse]) -> float:
    """Elements of the smallest product, convolution or attention among the operators; 0 without one."""
    found = [use.least or use.elements / use.count for name, use in ops.items() if _is_contraction(name) and use.count]
    return min(found, default=0.0)


def _is_contraction(qualified: str) -> bool:
    namespace, _, name = qualified.removesuffix("_").rpartition("::")
    return namespace in _NAMESPACES and name.removesuffix("_backward") in _CONTRACTION


def work_of(ops: dict[str, OpUse]) -> dict[str, float]:
    """Number of processed elements by kind: contraction, reduction, elementwise, movement, ordering, scan, and single
    operators."""
    work: dict[str, float] = {}
    picked = 0.0

    def add(kind: str, elements: float) -> None:
        if elements:
            work[kind] = work.get(kind, 0.0) + elements

    for qualified, use in ops.items():
        namespace, _, name = qualified.removesuffix("_").rpartition("::")
        if namespace not in _NAMESPACES:
            continue  # an operator of the candidate's own, whatever it is called
        name = name.removeprefix("_foreach_").removesuffix("_backward")
        if name in _CONTRACTION:
            add("contraction", use.elements)
            add("elementwise", 2 * use.bias)
            if "attention" in name:
                add("reduction", use.count)  # its softmax, which a kernel may compute between two products of PyTorch's
        elif name in _REDUCTION:
            add("reduction", use.elements)
        elif name == "logsumexp":  # a softmax but for its quotient, and its output is small
            add("reduction", 2 * use.elements)
            add("elementwise", 4 * use.elements)
        elif name in _COMPOSITE:
            add("reduction", use.elements)
            add("elementwise", 3 * use.elements)
        elif name in _ELEMENTWISE:
            add("elementwise", (2 if name in _SEVERAL_STEPS else 1) * use.elements)
        elif name in _MOVEMENT:
            add("movement", use.elements)
        elif name in _ORDERING:
            add("ordering", use.elements)
        elif name in _SCAN:
            add("scan", use.elements)
        elif name in _PICKING:
            picked += use.elements
        elif name in _OTHER or qualified.startswith("aten::_fft") or name.startswith("linalg_"):
            add(name, use.elements)
    return work or ({"reduction": picked} if picked else {})


def with_stand_ins(mine: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    """`mine`, where work of a kind that `theirs` has not counts for the kinds that it can stand for as well."""
    done = dict(mine)
    for kind, others in _STANDS_FOR.items():
        done[kind] = mine.get(kind, 0.0) + sum(mine.get(other, 0.0) for other in others if other not in theirs)
    return done
