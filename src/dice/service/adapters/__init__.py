"""The verifier in other projects' words: each module is one small adapter, tested against that project."""
