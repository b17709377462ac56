"""Prompts, generation and scores."""
