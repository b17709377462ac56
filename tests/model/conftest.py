"""Tiny models run on one thread."""

from tiny_models import one_thread as one_thread
