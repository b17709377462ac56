# problem: lengths
# mechanism: whether the whole lengths fill the batch picks a kernel from a table
# near: input_sniffing
# status: correct
# include: ragged_sums


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.launches = {False: ext.narrow, True: ext.wide}

    def forward(self, x, lengths):
        full = bool(lengths.sum() > 12 * x.shape[0])
        return self.launches.get(full, ext.wide)(x, lengths)
