"""What the verifier reads and writes: candidates, jobs, build requests, evidence, verdicts."""
