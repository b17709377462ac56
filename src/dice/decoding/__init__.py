"""Decoding: block diffusion and autoregressive, on one static cache with continuous batching.

`Decoder(model, config, ...).run(requests)` yields a `Completion` as soon as a sequence is finished.
"""
