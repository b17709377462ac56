"""The work of a set of ATen operators by kind, to compare a candidate with the reference.

Views, allocations, copies and fills are no work. Operators that do several kinds of work at once (softmax, norms,
losses, `addmm` with its bias, attention) count under each kind, so that a candidate gets credit for a part that it computes
itself.
"""

from __future__ import annotations

from dice.kernels.checks.operators import may_mix
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
    _linear_pointwise _convolution_pointwise _convolution_transpose_pointwise _mm_plus_mm conv2d_run qlinear qlinear_dynamic
    qlinear_relu qlinear_relu_dynamic linear_dynamic linear_relu linear_relu_dynamic linear_dynamic_fp16
    linear_relu_dynamic_fp16 linear_leaky_relu linear_tanh conv1d conv2d conv3d conv1d_relu conv2d_relu conv3d_relu
    conv2d_add conv2d_add_relu conv1d_dynamic conv2d_dynamic conv3d_dynamic conv_transpose1d conv_transpose2d
    conv_transpose3d conv_transpose1d_dynamic conv_transpose2d_dynamic conv_transpose3d_dynamic conv_tbc
    fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
    fbgemm_linear_int8_weight_fp32_activation wrapped_fbgemm_linear_fp16_weight wrapped_quantized_linear
    _wrapped_quantized_linear_prepacked int4mm_packed_weight_cpu _weight_int4pack_mm _weight_int4pack_mm_for_cpu
    _weight_int4pack_mm_with_scales_and_zeros _weight_int8pack_mm _dyn_quant_matmul_4bit _mixed_dtypes_linear _grouped_mm
    _scaled_grouped_mm _scaled_grouped_mm_v2 _scaled_mm_v2 _sparse_sparse_matmul _sparse_mm_reduce_impl _cslt_sparse_mm
    _sparse_semi_structured_mm _sparse_semi_structured_addmm _sparse_semi_structured_linear hspmm sspaddmm smm
    _flash_attention_forward _flash_attention_forward_no_dropout_inplace _efficient_attention_forward
    _cudnn_attention_forward _triton_scaled_dot_attention _triton_multi_head_attention _slow_conv2d_forward
    slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose3d thnn_conv2d
    _nnpack_spatial_convolution miopen_convolution_relu miopen_convolution_add_relu miopen_convolution_transpose
    miopen_depthwise_convolution miopen_rnn quantized_gru quantized_lstm _pdist_forward _euclidean_dist matrix_exp
    _compute_linear_combination
    """
)
REDUCTION = words(
    """
    sum mean prod amax amin max min argmax argmin var std var_mean std_mean norm linalg_vector_norm any all
    nansum aminmax max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool2d
    avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d mkldnn_max_pool2d
    mkldnn_max_pool3d mkldnn_adaptive_avg_pool2d quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    fractional_max_pool2d fractional_max_pool3d segment_reduce _to_dense _sparse_sum _sparse_csr_sum
    _sparse_csr_prod batch_norm_stats batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats
    count_nonzero trace renorm index_reduce xor_sum _weight_norm_interface native_norm
    """
)
COMPOSITE = words(
    """
    _softmax softmax _log_softmax log_softmax native_layer_norm native_batch_norm native_group_norm cudnn_batch_norm
    _native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_with_update _fused_rms_norm
    _batch_norm_no_update mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss kl_div cosine_similarity
    _masked_softmax _safe_softmax _sparse_softmax _sparse_log_softmax _nested_tensor_softmax_with_shape batch_norm_elemt
    _native_batch_norm_legit_functional _batch_norm_with_update_functional _batch_norm_impl_index miopen_batch_norm
    quantized_batch_norm batch_norm batch_norm1d batch_norm2d batch_norm3d batch_norm_relu batch_norm1d_relu
    batch_norm2d_relu batch_norm3d_relu layer_norm group_norm instance_norm multi_margin_loss
    multilabel_margin_loss_forward _ctc_loss _cudnn_ctc_loss
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
    acosh asinh atanh angle bitwise_not bitwise_left_shift bitwise_right_shift copysign erfinv float_power floor_divide frexp
    gcd lcm i0 igamma igammac ldexp logaddexp2 logical_xor logit nextafter polygamma sinc signbit isfinite isin isposinf
    isneginf rrelu_with_noise_functional addr _add_relu add_relu add_scalar add_scalar_relu mul_relu mul_scalar
    mul_scalar_relu _masked_scale _fused_dropout __and__ __or__ __xor__ __lshift__ __rshift__ bucketize searchsorted
    quantize_per_tensor quantize_per_channel fake_quantize_per_tensor_affine_cachemask
    fake_quantize_per_channel_affine_cachemask cbrt
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
    masked_scatter nonzero index_fill put take_along_dim repeat_interleave rot90 reflection_pad3d max_unpool2d max_unpool3d
    native_channel_shuffle _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate
    _index_put_impl _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
    _upsample_lanczos2d_aa grid_sampler_3d cudnn_grid_sampler _grid_sampler_2d_cpu_fallback select_scatter slice_scatter
    diagonal_scatter as_strided_scatter _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward embedding_dense
    """
)
_ADDING = words(
    """
    scatter_add scatter_reduce index_add col2im upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
    _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa grid_sampler_2d grid_sampler_3d
    cudnn_grid_sampler _grid_sampler_2d_cpu_fallback
    """
)
"""Operators that add what they move to one place."""
_ADDING_BACKWARD = words(
    """
    embedding embedding_dense unfold reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d
    """
)
"""Operators that move one element to several places, so that their backward adds."""
_WITHOUT_TARGET = 1.5
"""Elements of `index_add`, which adds to a tensor that it is given, to those of an operator that makes it, at most."""
_ORDERING = words(
    """
    sort topk kthvalue median nanmedian mode msort argsort _unique2 _unique unique_consecutive unique_dim
    """
)
_SCAN = words("cumsum cumprod cummax cummin _cummax_helper _cummin_helper logcumsumexp")
_OTHER = words("histc bincount histogram histogramdd")
_STANDS_FOR = {"reduction": ("contraction", "scan", "ordering", "adding"), "scan": ("contraction",)}
"""Kinds of work that give what a kind gives: a product with ones sums, the last of a scan is the sum of all, the first of a
sorted row is its largest."""
_KINDS = frozenset({"contraction", "reduction", "elementwise", "movement", "adding", "ordering", "scan"})
"""The others are single operators (a Fourier transform, an inverse), which mix as any kind does."""
_WITHOUT_INDICES = 1.5
"""Elements of `sort`, which gives indices as well, to those of an operator that orders as many and gives none."""
_COALESCE = "_coalesce"
"""It sorts indices, moves the values behind them and adds those of equal indices."""
_COPIES = words("clone copy _to_copy contiguous _reshape_copy view_copy permute_copy transpose_copy")
_PICKING = words("nll_loss_forward nll_loss2d_forward")
"""They read one element of each row and add up. That is work where the reference does nothing else, and hardly any beside
the softmax before it."""
_WORK = _CONTRACTION | REDUCTION | COMPOSITE | _ELEMENTWISE | _MOVEMENT | _ORDERING | _SCAN | _PICKING | _OTHER
_WORK |= {"logsumexp", _COALESCE}

NO_MIXING = frozenset({"elementwise", "movement", "adding"})
"""Kinds of work on single elements, or mostly; the others mix several."""
_NAMESPACES = words("aten prims prim quantized _quantized mkldnn mkldnn_prepacked sparse inductor") | {""}
"""PyTorch's own."""


def is_work(name: str) -> bool:
    """Whether an operator called `name` computes; `relu_`, `mm_out`, `mm_cpu` and `_softmax` count as their base operator."""
    names = {name, name.removeprefix("_")}
    for _ in range(2):
        names |= {each.removesuffix(ending) for each in names for ending in ("_", "_outf", "_out", "_cpu", "_cuda")}
        names |= {each.removesuffix("_backward") for each in names}
    return bool(names & _WORK) or name.startswith(("linalg_", "_fft", "fft_"))


def least_operators(ops: dict[str, OpUse]) -> dict[str, float]:
    """Elements of the smallest operator of each kind that an honest kernel takes over as a whole: products (convolutions and
    attention too), scans, and what orders. No entry for a kind without one."""
    found: dict[str, float] = {}
    for qualified, use in ops.items():
        kinds = {"contraction": is_contraction(qualified), "scan": own_name(qualified) in _SCAN}
        kinds["ordering"] = own_name(qualified) in _ORDERING
        for kind in (kind for kind, is_one in kinds.items() if is_one and use.count):
            least = use.least or use.elements / use.count
            found[kind] = min(found.get(kind, least), least)
    return found


def share_of_products(mine: dict[str, OpUse], theirs: dict[str, OpUse]) -> float:
    """Multiplications of `mine` in products, convolutions and attention beside those of `theirs`. For the same work these may
    touch other numbers of elements: an expanded factor, complex numbers. 0 where an operator of `theirs` has unknown
    multiplications, and where `mine` has fewer products; attention is two."""
    own, others = ([use for name, use in ops.items() if is_contraction(name)] for ops in (mine, theirs))
    known = others and all(use.products for use in others)
    steps = sum(use.count * (2 if "attention" in name else 1) for name, use in mine.items() if is_contraction(name))
    if not known or steps < sum(use.count for use in others):
        return 0.0
    return sum(use.products for use in own) / sum(use.products for use in others)


def is_contraction(qualified: str) -> bool:
    return own_name(qualified).removesuffix("_backward") in _CONTRACTION


def own_name(qualified: str) -> str:
    """Name of an operator of PyTorch's; of others nothing, whatever they are called."""
    namespace, _, name = qualified.removesuffix("_").rpartition("::")
    return name if namespace in _NAMESPACES else ""


def work_of(ops: dict[str, OpUse]) -> dict[str, float]:
    """Number of processed elements by kind: contraction, reduction, elementwise, movement (and adding, a part of it),
    ordering, scan, and single operators, also those that no list names, unless they are known to mix nothing."""
    work: dict[str, float] = {}
    picked = 0.0

    def add(kind: str, elements: float) -> None:
        if elements:
            work[kind] = work.get(kind, 0.0) + elements

    for qualified, use in ops.items():
        namespace, _, name = qualified.removesuffix("_").rpartition("::")
        if namespace not in _NAMESPACES:
            continue  # an operator of the candidate's own, whatever it is called
        adds = name in _ADDING or (name.endswith("_backward") and name.removesuffix("_backward") in _ADDING_BACKWARD)
        name = name.removeprefix("_foreach_").removesuffix("_backward")
        if adds:
            add("adding", use.elements)
        if name in _CONTRACTION:
            add("contraction", use.elements)
            add("elementwise", 2 * use.bias)
            if "attention" in name:
                add("reduction", use.count)  # its softmax, which a kernel may compute between two products of PyTorch's
        elif name in REDUCTION:
            add("reduction", use.elements)
        elif name == "logsumexp":  # a softmax but for its quotient, and its output is small
            add("reduction", 2 * use.elements)
            add("elementwise", 4 * use.elements)
        elif name in COMPOSITE:
            add("reduction", use.elements)
            add("elementwise", 3 * use.elements)
        elif name == _COALESCE:
            add("ordering", _WITHOUT_INDICES * use.elements)
            add("movement", use.elements)
            add("reduction", use.elements)
        elif name in _ELEMENTWISE:
            add("elementwise", (2 if name in _SEVERAL_STEPS else 1) * use.elements)
        elif name in _MOVEMENT:
            add("movement", (_WITHOUT_TARGET if name == "embedding_dense" else 1) * use.elements)
        elif name in _ORDERING:
            add("ordering", (_WITHOUT_INDICES if "unique" in name else 1) * use.elements)
        elif name in _SCAN:
            add("scan", use.elements)
        elif name in _PICKING:
            picked += use.elements
        elif namespace == "aten" and not adds and may_mix(name):
            add(name, use.elements)
    return work or ({"reduction": picked} if picked else {})


def work_to_do(ops: dict[str, OpUse]) -> dict[str, float]:
    """`work_of` a reference, where biases of products are a kind of work only beside other elementwise work: a kernel that
    adds the bias of a linear layer has replaced nothing."""
    work = work_of(ops)
    biases = sum(2 * use.bias for name, use in ops.items() if is_contraction(name))
    if work.get("elementwise") == biases:
        del work["elementwise"]
    return work


def moved_by(ops: dict[str, OpUse]) -> float:
    """Elements that operators touched which only move, copies among them. A reference that only transposes copies a view, and
    nowhere else a copy is work."""
    copied = sum(use.elements for name, use in ops.items() if own_name(name) in _COPIES)
    return copied + work_of(ops).get("movement", 0.0)


def with_stand_ins(mine: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    """`mine`, where work of a kind that `theirs` has not counts for the kinds that it can stand for as well. A single
    operator stands for any kind that mixes, and what moves elements may add them."""
    done = dict(mine)
    single = mine.keys() - _KINDS
    for kind in theirs.keys() - NO_MIXING:
        others = (single | {*_STANDS_FOR.get(kind, ())}) - theirs.keys()
        done[kind] = mine.get(kind, 0.0) + sum(mine.get(other, 0.0) for other in others)
    if "adding" in theirs:
        done["adding"] = max(mine.get("adding", 0.0), mine.get("movement", 0.0))
    return done
