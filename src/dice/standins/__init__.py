"""Stand-ins for what others published and what may not be shipped, in the same form: made for the scale `rehearsal`."""
