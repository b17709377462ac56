"""ATen operators that mix no elements, though no list of work names them: views, new tensors, copies, random numbers,
other layouts, questions about a tensor. What is in no list may mix."""

from __future__ import annotations

from dice.kernels.source.lexer import words

_VIEWS = words(
    """
    adjoint alias as_strided broadcast_to ccol_indices chunk coalesce col_indices conj contiguous crow_indices detach
    diagonal dsplit expand expand_as flatten hsplit imag indices mH mT matrix_H moveaxis movedim narrow numpy_T permute
    positive ravel real reshape reshape_as resolve_conj resolve_neg row_indices select slice split split_with_sizes
    squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unfold unsqueeze values view view_as
    view_as_complex view_as_real vsplit _autocast_to_full_precision _autocast_to_reduced_precision _conj _fw_primal
    _grad_sum_to_size _indices _make_dual _ncf_unsqueeze _ncf_view _neg_view _reshape_alias _unpack_dual _unsafe_view
    _values unsafe_chunk unsafe_split unsafe_split_with_sizes broadcast_tensors atleast_1d atleast_2d atleast_3d
    slice_inverse lift lift_fresh
    """
)
_NEW = words(
    """
    arange bartlett_window blackman_window empty empty_permuted empty_strided empty_quantized eye from_file full
    hamming_window hann_window kaiser_window linspace logspace ones range scalar_tensor tensor as_tensor tril_indices
    triu_indices zeros zero fill fill_diagonal complex polar _efficientzerotensor _empty_affine_quantized
    _empty_per_channel_affine_quantized _list_to_tensor _make_dep_token _shape_as_tensor affine_grid_generator
    cudnn_affine_grid_generator get_gradients cartesian_prod combinations meshgrid block_diag diag diagflat
    """
)
_COPIES = words(
    """
    clone copy to cpu cuda pin_memory _pin_memory _copy_from _copy_from_and_resize _lazy_clone _reshape_from_tensor
    _resize_output resize resize_as set set_data record_stream dequantize int_repr concat concatenate column_stack
    hstack vstack dstack row_stack tile pad fliplr flipud argwhere _chunk_cat _mkldnn_reshape _mkldnn_transpose type_as
    requires_grad chalf _coalesced copy_sparse_to_sparse resize_as_sparse linalg_diagonal fft_fftshift fft_ifftshift
    fft_fftfreq fft_rfftfreq _cudnn_rnn_flatten_weight mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight
    _dyn_quant_pack_4bit_weight _wrapped_linear_prepack _rowwise_prune _pack_sequence sorted data dict items keys
    _new_zeros_with_same_feature_meta _dim_arange embedding_renorm _gather_sparse embedding_sparse _spdiags lu_unpack _stack
       _pack_padded_sequence _pad_packed_sequence pad_sequence _pad_circular _pad_enum flatten_dense_tensors
    unflatten_dense_tensors _add_batch_dim _remove_batch_dim nonzero_static nonzero_numpy
    """
)
_RANDOM = words(
    """
    alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout feature_dropout geometric
    log_normal multinomial normal normal_functional poisson rand randint randn randperm random rrelu uniform
    _cudnn_init_dropout_state _fill_mem_eff_dropout_mask _fused_sdp_choice _sample_dirichlet _standard_gamma
    """
)
_POINTWISE = words(
    """
    __iand__ __ior__ __ixor__ __ilshift__ __irshift__ _conj_physical conj_physical clip deg2rad rad2deg mvlgamma
    true_divide equal isclose isreal _amp_foreach_non_finite_check_and_unscale _amp_update_scale __and__ __or__ __xor__
    __lshift__ __rshift__ absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh divide fix greater greater_equal
    less less_equal log_sigmoid multiply negative not_equal subtract outer ger kron diff glu_jvp glu_backward_jvp
    infinitely_differentiable_gelu quantize_per_tensor_dynamic _transform_bias_rescale_qkv _saturate_weight_to_fp16
    _dirichlet_grad _standard_gamma_grad
    """
)
_QUESTIONS = words(
    """
    _local_scalar_dense item allclose dense_dim sparse_dim element_size numel size stride storage_offset sym_numel sym_size
    sym_stride sym_storage_offset sym_is_contiguous _nnz _dimI _dimV _version _has_compatible_shallow_copy_type
    _has_same_storage_numel _debug_has_internal_overlap result_type get_device
    """
)
_HARMLESS = _VIEWS | _NEW | _COPIES | _RANDOM | _POINTWISE | _QUESTIONS
_FAMILIES = (
    "_assert",
    "fused_moving_",
    "fake_quantize_",
    "_no_grad_",
    "_fused_ad",
    "_fake_quantize_",
    "_cast_",
    "_convert_",
    "_functional_",
    "_is_",
    "_make_",
    "_nested_",
    "_philox_",
    "_sobol_",
    "_sparse_",
    "_test_",
    "_to_",
    "_validate_",
    "fbgemm_",
    "is_",
    "new_",
    "q_",
    "sparse_",
    "special_",
    "to_",
)
"""What names of operators begin with that ask, make, convert or work on single elements, but for those in a list of work."""


def may_mix(name: str) -> bool:
    """Whether an operator of ATen's that is in no list of work may mix elements. `name`: without `_` or `_backward` at the
    end."""
    return (
        not {name, f"{name}_"} & _HARMLESS and not name.startswith(_FAMILIES) and not name.endswith(("_copy", "_like"))
    )
