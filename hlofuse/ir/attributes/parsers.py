"""Typed values of attributes, by attribute name as XLA's own parser is type-directed.

The common forms are read by patterns, anything else by the grammar; both make the same values.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from hlofuse.ir.attributes import patterns
from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.text.grammar import parse_attribute

__all__ = ["OpMetadata", "parse_value"]


def parse_value(name: str, text: str) -> Any:
    """The value of attribute `name`; its own text for a name nobody knows.

    Lists of numbers are tuples, names of computations and enumerations are strings; see
    `hlofuse.ir.attributes` for the rest.
    """
    reader = _READERS.get(name)
    if reader is None:
        return text
    try:
        return reader(text)
    except patterns.Uncommon:
        return _by_grammar(name, text)


@lru_cache(maxsize=4096)
def _by_grammar(name: str, text: str) -> Any:
    return parse_attribute(name, text)


def _table() -> dict[str, Callable[[str], Any]]:
    by_reader: dict[Callable[[str], Any], str] = {
        patterns.boolean: """
            is_scheduled alias_passthrough_params is_stable largest constrain_layout use_global_device_ids
            has_dynamic_root is_host_transfer is_composite custom_call_has_side_effect is_reverse
            is_associative indices_are_sorted unique_indices left_side lower unit_diagonal
        """,
        patterns.integer: """
            replica_count num_partitions iota_dimension k channel_id index feature_group_count
            batch_group_count feature_index delta exponent_bits mantissa_bits index_vector_dim num_carries
            inferred_dimension cross_program_prefetch_index
        """,
        patterns.integers: """
            dimensions fft_length dynamic_slice_sizes lhs_contracting_dims rhs_contracting_dims lhs_batch_dims
            rhs_batch_dims lhs_ragged_dims rhs_group_dims offset_dims collapsed_slice_dims start_index_map
            operand_batching_dims start_indices_batching_dims update_window_dims inserted_window_dims
            scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims slice_sizes
        """,
        patterns.name: """
            to_apply calls condition body true_computation false_computation select scatter fft_type
            padding_type direction type order distribution algorithm schedule api_version transpose_a
            convolution_kind kind mode
        """,
        patterns.names: "branch_computations called_computations operand_precision control-predecessors",
        patterns.string: """
            execution_thread async_execution_thread infeed_config outfeed_config custom_call_target
        """,
        patterns.config: "backend_config",
        patterns.metadata: "metadata",
        patterns.window: "window",
        patterns.slice_ranges: "slice",
        patterns.padding: "padding",
        patterns.dim_labels: "dim_labels",
        patterns.frontend_attributes: "frontend_attributes",
        patterns.output_aliases: "output_to_operand_aliasing",
        patterns.uncommon: """
            allow_spmd_sharding_propagation_to_parameters allow_spmd_sharding_propagation_to_output epsilon
            statistics parameter_replication origin operand_layout_constraints literal outfeed_shape domain
            result_accuracy sparsity_config sparsity buffer_donor
            entry_computation_layout origin_recovery_table debug_attributes input_output_alias replica_groups
            source_target_pairs sharding
        """,
    }
    return {name: reader for reader, names in by_reader.items() for name in names.split()}


_READERS = _table()
