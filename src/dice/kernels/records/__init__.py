"""What the verifier reads and writes: problems, candidates, requests, evidence, verdicts."""
