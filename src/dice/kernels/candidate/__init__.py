"""What runs inside the candidate's process, none of it trusted: its runner, its extensions, what is seen of it."""
