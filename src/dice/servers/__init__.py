"""Models behind servers: a client of the chat completions protocol, its budget, recorded answers, a local vLLM."""
