"""Reports: tables, figures, the comparison with the paper, the numbers of the text, and the explorer."""
