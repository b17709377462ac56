"""Which memory of PyTorch's allocator may be overwritten before a call."""

from __future__ import annotations

from dice.kernels.candidate.poison import freed_blocks


def test_only_blocks_that_nothing_uses_and_no_graph_replays_into() -> None:
    in_use = {"address": 0, "size": 512, "state": "active_allocated"}
    in_flight = {"address": 512, "size": 512, "state": "active_awaiting_free"}
    free = {"address": 1024, "size": 1024, "state": "inactive"}
    common = {"segment_pool_id": (0, 0), "blocks": [in_use, in_flight, free]}
    of_a_graph = {"segment_pool_id": (0, 1), "blocks": [free | {"address": 4096}]}
    assert list(freed_blocks([common, of_a_graph])) == [(1024, 1024)]
