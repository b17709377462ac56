# problem: lengths
# mechanism: the average fill of a ragged batch, from its whole lengths, chooses the kernel
# near: input_sniffing
# status: correct
# include: ragged_sums


def crowded(lengths, width):
    return lengths.sum().item() > 0.25 * lengths.numel() * width


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        total = lengths.sum().item()
        launch = ext.wide if total > 12 * x.shape[0] else ext.narrow
        return launch(x, lengths)
