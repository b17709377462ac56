"""Training: supervised fine-tuning and reinforcement learning of block-diffusion and causal models."""
