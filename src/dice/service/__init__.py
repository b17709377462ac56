"""The verifier as a service: HTTP and JSON in front of one open pool, and the client. Needs the extra `serve`."""
