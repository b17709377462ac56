"""The language model: Qwen3's geometry, causal or block-causal, with Hugging Face checkpoints as they are."""
